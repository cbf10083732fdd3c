"""The builtin that runs a whole program: LLVM IR text, to be read with `common.runtime.builtins_ir`.

``f(*arguments)`` returns 0, BAD_ARGUMENT + index, OVERLAP + index, or (instruction + 1) << 32 | status; if the program
is bound to Python objects (`common.runtime.step_ir`), its results instead of 0.

Table, in words: [arguments, those given, frame, last, bufs, records, code, bytes, writes, binding]; frame, last and
bufs are addresses, the others offsets into the table, binding 0 if there is none:

- a record per argument and the binding: see `common.runtime.step_ir`;
- code, per kernel call: [kernel, number of the instruction, buffers, slots..., ints, values...]; what has one of the
  small numbers of `common.runtime.program_plan` in place of a kernel's address: [that, number of the instruction, a,
  b, c, d];
- bytes and writes, one word per argument each.

Words of the frame are addresses of buffers, or counters of loops.

``last[i]`` is the data address with which argument i passed the overlap check; behind it lies the list of the
arguments whose address has changed. What the call itself makes overlaps nothing, so its word stays 0. At ``bufs`` the
addresses of the buffers of one kernel are put together.
"""

from __future__ import annotations

from common.runtime.execute_ir import EXECUTE
from common.runtime.step_ir import OBJECTS

RUN = (
    EXECUTE
    + OBJECTS
    + """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %table = call ptr @table_of(ptr %self)
  %count = call i64 @word(ptr %table, i64 0)
  %frame_word = call i64 @word(ptr %table, i64 2)
  %frame = inttoptr i64 %frame_word to ptr
  %last_word = call i64 @word(ptr %table, i64 3)
  %last = inttoptr i64 %last_word to ptr
  %bufs_word = call i64 @word(ptr %table, i64 4)
  %bufs = inttoptr i64 %bufs_word to ptr
  %changed = getelementptr i64, ptr %last, i64 %count
  %records_offset = call i64 @word(ptr %table, i64 5)
  %records = getelementptr i64, ptr %table, i64 %records_offset
  %code_offset = call i64 @word(ptr %table, i64 6)
  %code = getelementptr i64, ptr %table, i64 %code_offset
  %bytes_offset = call i64 @word(ptr %table, i64 7)
  %bytes = getelementptr i64, ptr %table, i64 %bytes_offset
  %writes_offset = call i64 @word(ptr %table, i64 8)
  %writes = getelementptr i64, ptr %table, i64 %writes_offset
  %given_count = call i64 @word(ptr %table, i64 1)
  %right_count = icmp eq i64 %given_count, %nargs
  br i1 %right_count, label %objects, label %wrong_count
wrong_count:
  %fewer = icmp ult i64 %nargs, %given_count
  %odd_index = select i1 %fewer, i64 %nargs, i64 %given_count
  %odd_code = add i64 %odd_index, 1000000
  %odd = call ptr @twingrad_PyLong_FromLongLong(i64 %odd_code)
  ret ptr %odd

; making objects may run Python code, so it is done before anything is read
objects:
  %binding_offset = call i64 @word(ptr %table, i64 9)
  %binding = getelementptr i64, ptr %table, i64 %binding_offset
  %is_bound = icmp ne i64 %binding_offset, 0
  br i1 %is_bound, label %make, label %start
make:
  %results = call i64 @word(ptr %binding, i64 0)
  %things = call i64 @word(ptr %binding, i64 1)
  %new_result = call ptr @twingrad_PyTuple_New(i64 %results)
  %new_left = call ptr @twingrad_PyTuple_New(i64 %things)
  %no_result = icmp eq ptr %new_result, null
  %no_left = icmp eq ptr %new_left, null
  %no_tuple = or i1 %no_result, %no_left
  br i1 %no_tuple, label %start_failed, label %fill
fill:
  %filled = call i1 @make_objects(ptr %table, ptr %binding, ptr %new_result, ptr %new_left)
  br i1 %filled, label %start, label %start_failed
start_failed:
  call void @twingrad_Py_DecRef(ptr %new_result)
  call void @twingrad_Py_DecRef(ptr %new_left)
  ret ptr null
start:
  %result = phi ptr [null, %objects], [%new_result, %fill]
  %left = phi ptr [null, %objects], [%new_left, %fill]
  br label %check

check:
  %i = phi i64 [0, %start], [%i_next, %checked]
  %record = phi ptr [%records, %start], [%record_next, %checked]
  %nc = phi i64 [0, %start], [%nc_next, %checked]
  %ng = phi i64 [0, %start], [%ng_next, %checked]
  %checked_all = icmp eq i64 %i, %count
  br i1 %checked_all, label %overlap, label %find
find:
  %nd = call i64 @word(ptr %record, i64 2)
  %slot = call i64 @word(ptr %record, i64 4)
  %source = call i64 @word(ptr %record, i64 5)
  %cell = call i64 @word(ptr %record, i64 6)
  %target = call i64 @word(ptr %record, i64 7)
  %shape = getelementptr i64, ptr %record, i64 9
  %record_next = getelementptr i64, ptr %shape, i64 %nd
  %i_next = add i64 %i, 1
  %cell_p = inttoptr i64 %cell to ptr
  switch i64 %source, label %given [i64 1, label %held i64 2, label %held_gradient i64 3, label %made
                                    i64 4, label %gradient i64 5, label %gradient]
given:
  %given_word = call i64 @word(ptr %args, i64 %ng)
  %given_as_it_is = inttoptr i64 %given_word to ptr
  %ng_given = add i64 %ng, 1
  br i1 %is_bound, label %given_bound, label %given_found
given_bound:
  %given_payload = call ptr @given_array(ptr %binding, ptr %given_as_it_is)
  %no_payload = icmp eq ptr %given_payload, null
  br i1 %no_payload, label %bad, label %given_found
given_found:
  %given_arg = phi ptr [%given_as_it_is, %given], [%given_payload, %given_bound]
  br label %found
held:
  %held_arg = load ptr, ptr %cell_p
  br label %present
held_gradient:
  %held_tensor = load ptr, ptr %cell_p
  %no_tensor = icmp eq ptr %held_tensor, null
  br i1 %no_tensor, label %bad, label %held_type
held_type:
  %template_word = call i64 @word(ptr %binding, i64 4)
  %template = inttoptr i64 %template_word to ptr
  %tensor_type = call ptr @pointer_at(ptr %template, i64 8)
  %is_tensor = call i1 @has_type(ptr %held_tensor, ptr %tensor_type)
  br i1 %is_tensor, label %held_payload, label %bad
held_payload:
  %payload_arg = call ptr @payload_of(ptr %binding, ptr %held_tensor)
  br label %present
present:
  %state_arg = phi ptr [%held_arg, %held], [%payload_arg, %held_payload]
  %no_arg = icmp eq ptr %state_arg, null
  br i1 %no_arg, label %bad, label %found
made:
  %made_arg = call ptr @array_of(ptr %binding, ptr %result, i64 %target)
  br label %own
gradient:
  %new_gradient = call ptr @item(ptr %left, i64 %target)
  %keeps_old = icmp eq ptr %new_gradient, null
  br i1 %keeps_old, label %old_gradient, label %new_payload
new_payload:
  %new_arg = call ptr @payload_of(ptr %binding, ptr %new_gradient)
  br label %own
old_gradient:
  %old_arg = call ptr @old_gradient(ptr %binding, ptr %record)
  %not_alone = icmp eq ptr %old_arg, null
  br i1 %not_alone, label %bad, label %own
own:
  %own_arg = phi ptr [%made_arg, %made], [%new_arg, %new_payload], [%old_arg, %old_gradient]
  %own_data = call i64 @word(ptr %own_arg, i64 2)
  call void @set_word(ptr %frame, i64 %slot, i64 %own_data)
  br label %checked

found:
  %arg = phi ptr [%given_arg, %given_found], [%state_arg, %present]
  %ng_item = phi i64 [%ng_given, %given_found], [%ng, %present]
  %is_result = icmp sge i64 %target, 0
  br i1 %is_result, label %keep, label %item
keep:
  call void @twingrad_Py_IncRef(ptr %arg)
  call void @set_result(ptr %binding, ptr %result, i64 %target, ptr %arg)
  br label %item
item:
  %kind = call i64 @word(ptr %record, i64 0)
  %subject = call i64 @word(ptr %record, i64 1)
  %flags64 = call i64 @word(ptr %record, i64 3)
  switch i64 %kind, label %array [i64 1, label %float i64 2, label %int]
array:
  %flags = trunc i64 %flags64 to i32
  %is_good = call i1 @is_array(ptr %arg, i64 %subject, i32 %flags)
  br i1 %is_good, label %array_sizes, label %bad
array_sizes:
  %fits = call i1 @has_sizes(ptr %arg, i64 %nd, ptr %shape)
  br i1 %fits, label %array_good, label %bad
array_good:
  %data = call i64 @word(ptr %arg, i64 2)
  call void @set_word(ptr %frame, i64 %slot, i64 %data)
  %before = call i64 @word(ptr %last, i64 %i)
  call void @set_word(ptr %last, i64 %i, i64 %data)
  call void @set_word(ptr %changed, i64 %nc, i64 %i)
  %is_new = icmp ne i64 %before, %data
  %is_new64 = zext i1 %is_new to i64
  %nc_array = add i64 %nc, %is_new64
  br label %checked
float:
  %is_float = call i1 @has_type(ptr %arg, ptr @twingrad_PyFloat_Type)
  br i1 %is_float, label %float_good, label %bad
float_good:
  %float_bits = call i64 @word(ptr %arg, i64 2)
  br label %number
int:
  %is_int = call i1 @has_type(ptr %arg, ptr @twingrad_PyLong_Type)
  br i1 %is_int, label %int_good, label %bad
int_good:
  %int_value = call i64 @twingrad_PyLong_AsLongLong(ptr %arg)
  %doubtful = icmp eq i64 %int_value, -1
  br i1 %doubtful, label %maybe_error, label %number
maybe_error:
  %error = call ptr @twingrad_PyErr_Occurred()
  %no_error = icmp eq ptr %error, null
  br i1 %no_error, label %number, label %too_large
too_large:
  call void @twingrad_PyErr_Clear()
  br label %bad
number:
  %number_value = phi i64 [%float_bits, %float_good], [%int_value, %int_good], [%int_value, %maybe_error]
  %subject_p = inttoptr i64 %subject to ptr
  store i64 %number_value, ptr %subject_p
  br label %checked
checked:
  %nc_next = phi i64 [%nc_array, %array_good], [%nc, %number], [%nc, %own]
  %ng_next = phi i64 [%ng_item, %array_good], [%ng_item, %number], [%ng, %own]
  br label %check
bad:
  %bad_code = add i64 %i, 1000000
  br label %forget

; only a pair with a changed address can newly overlap: in a training loop the parameters cost nothing here
overlap:
  %c = phi i64 [0, %check], [%c_next, %against_end]
  %compared_all = icmp eq i64 %c, %nc
  br i1 %compared_all, label %execute, label %one
one:
  %a = call i64 @word(ptr %changed, i64 %c)
  %c_next = add i64 %c, 1
  %a_start = call i64 @word(ptr %last, i64 %a)
  %a_bytes = call i64 @word(ptr %bytes, i64 %a)
  %a_stop = add i64 %a_start, %a_bytes
  %a_writes = call i64 @word(ptr %writes, i64 %a)
  br label %against
against:
  %b = phi i64 [0, %one], [%b_next, %against_next]
  %against_all = icmp eq i64 %b, %count
  br i1 %against_all, label %against_end, label %pair
pair:
  %b_next = add i64 %b, 1
  %b_start = call i64 @word(ptr %last, i64 %b)
  %b_bytes = call i64 @word(ptr %bytes, i64 %b)
  %b_stop = add i64 %b_start, %b_bytes
  %b_writes = call i64 @word(ptr %writes, i64 %b)
  %either = or i64 %a_writes, %b_writes
  %one_writes = icmp ne i64 %either, 0
  %different = icmp ne i64 %a, %b
  %starts_before = icmp ult i64 %a_start, %b_stop
  %stops_after = icmp ult i64 %b_start, %a_stop
  %a_some = icmp ne i64 %a_bytes, 0
  %b_some = icmp ne i64 %b_bytes, 0
  %t0 = and i1 %one_writes, %different
  %t1 = and i1 %starts_before, %stops_after
  %t2 = and i1 %a_some, %b_some
  %t3 = and i1 %t0, %t1
  %clash = and i1 %t2, %t3
  br i1 %clash, label %clashed, label %against_next
against_next:
  br label %against
against_end:
  br label %overlap
clashed:
  %b_first = icmp ult i64 %a, %b
  %later = select i1 %b_first, i64 %b, i64 %a
  %clash_code = add i64 %later, 2000000
  br label %forget

; a refused call leaves no address behind that counts as checked
forget:
  %forget_code = phi i64 [%bad_code, %bad], [%clash_code, %clashed]
  %forget_count = phi i64 [%nc, %bad], [%nc, %clashed]
  br label %forget_loop
forget_loop:
  %f = phi i64 [0, %forget], [%f_next, %forget_body]
  %forgotten = icmp eq i64 %f, %forget_count
  br i1 %forgotten, label %forget_end, label %forget_body
forget_body:
  %victim = call i64 @word(ptr %changed, i64 %f)
  call void @set_word(ptr %last, i64 %victim, i64 0)
  %f_next = add i64 %f, 1
  br label %forget_loop
forget_end:
  br label %answer

execute:
  %status = call i64 @execute(ptr %frame, ptr %bufs, ptr %code, i1 true)
  %ok = icmp eq i64 %status, 0
  %give = and i1 %ok, %is_bound
  br i1 %give, label %finish, label %answer
answer:
  %answer_value = phi i64 [%forget_code, %forget_end], [%status, %execute]
  call void @twingrad_Py_DecRef(ptr %result)
  call void @twingrad_Py_DecRef(ptr %left)
  %code_object = call ptr @twingrad_PyLong_FromLongLong(i64 %answer_value)
  ret ptr %code_object
finish:
  call void @leave(ptr %binding, ptr %left)
  call void @twingrad_Py_DecRef(ptr %left)
  %is_one = call i64 @word(ptr %binding, i64 3)
  %single = icmp ne i64 %is_one, 0
  br i1 %single, label %one_result, label %all_results
one_result:
  %only = call ptr @item(ptr %result, i64 0)
  call void @twingrad_Py_IncRef(ptr %only)
  call void @twingrad_Py_DecRef(ptr %result)
  ret ptr %only
all_results:
  ret ptr %result
}
"""
)
