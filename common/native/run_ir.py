"""The builtin that runs a whole program: LLVM IR text, to be read with `common.native.calls_ir`.

``f(*arguments)`` returns 0, BAD_ARGUMENT + index, OVERLAP + index, or (instruction + 1) << 32 | status.

Table, in words: [arguments, instructions, frame, last, bufs, records, code, bytes, writes]; frame, last and bufs
are addresses, the other four offsets into the table:

- a record per argument: [kind, descr word or cell address, nd, flags, slot, dims...];
- code, per instruction: [kernel, buffers, slots..., ints, values...];
- bytes and writes, one word per argument each.

``last[i]`` is the data address with which argument i passed the overlap check; behind it lies the list of the
arguments whose address has changed. At ``bufs`` the addresses of the buffers of one kernel are put together.
"""

from __future__ import annotations

RUN = """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %table = call ptr @table_of(ptr %self)
  %count = call i64 @word(ptr %table, i64 0)
  %instructions = call i64 @word(ptr %table, i64 1)
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
  %right_count = icmp eq i64 %count, %nargs
  br i1 %right_count, label %check, label %wrong_count
wrong_count:
  %fewer = icmp ult i64 %nargs, %count
  %odd_index = select i1 %fewer, i64 %nargs, i64 %count
  %odd_code = add i64 %odd_index, 1000000
  br label %answer

check:
  %i = phi i64 [0, %entry], [%i_next, %checked]
  %record = phi ptr [%records, %entry], [%record_next, %checked]
  %nc = phi i64 [0, %entry], [%nc_next, %checked]
  %checked_all = icmp eq i64 %i, %count
  br i1 %checked_all, label %overlap, label %item
item:
  %arg_word = call i64 @word(ptr %args, i64 %i)
  %arg = inttoptr i64 %arg_word to ptr
  %kind = call i64 @word(ptr %record, i64 0)
  %subject = call i64 @word(ptr %record, i64 1)
  %nd = call i64 @word(ptr %record, i64 2)
  %flags64 = call i64 @word(ptr %record, i64 3)
  %slot = call i64 @word(ptr %record, i64 4)
  %shape = getelementptr i64, ptr %record, i64 5
  %record_next = getelementptr i64, ptr %shape, i64 %nd
  %i_next = add i64 %i, 1
  switch i64 %kind, label %array [i64 1, label %float i64 2, label %int]
array:
  %flags = trunc i64 %flags64 to i32
  %is_good = call i1 @is_array(ptr %arg, i64 %subject, i32 %flags)
  br i1 %is_good, label %array_rank, label %bad
array_rank:
  %own_nd_p = getelementptr i8, ptr %arg, i64 24
  %own_nd = load i32, ptr %own_nd_p
  %own_nd64 = zext i32 %own_nd to i64
  %rank_equal = icmp eq i64 %own_nd64, %nd
  br i1 %rank_equal, label %array_shape, label %bad
array_shape:
  %dims = call ptr @pointer_at(ptr %arg, i64 32)
  %dims_equal = call i1 @same_words(ptr %dims, ptr %shape, i64 %nd)
  br i1 %dims_equal, label %array_good, label %bad
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
  br label %cell
int:
  %is_int = call i1 @has_type(ptr %arg, ptr @twingrad_PyLong_Type)
  br i1 %is_int, label %int_good, label %bad
int_good:
  %int_value = call i64 @twingrad_PyLong_AsLongLong(ptr %arg)
  %doubtful = icmp eq i64 %int_value, -1
  br i1 %doubtful, label %maybe_error, label %cell
maybe_error:
  %error = call ptr @twingrad_PyErr_Occurred()
  %no_error = icmp eq ptr %error, null
  br i1 %no_error, label %cell, label %raise
cell:
  %cell_value = phi i64 [%float_bits, %float_good], [%int_value, %int_good], [%int_value, %maybe_error]
  %cell_p = inttoptr i64 %subject to ptr
  store i64 %cell_value, ptr %cell_p
  br label %checked
checked:
  %nc_next = phi i64 [%nc_array, %array_good], [%nc, %cell]
  br label %check
bad:
  %bad_code = add i64 %i, 1000000
  br label %forget
raise:
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
  %forget_code = phi i64 [%bad_code, %bad], [%clash_code, %clashed], [-1, %raise]
  %forget_count = phi i64 [%nc, %bad], [%nc, %clashed], [%nc, %raise]
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
  %has_error = icmp eq i64 %forget_code, -1
  br i1 %has_error, label %raised, label %answer
raised:
  ret ptr null

execute:
  %step = phi i64 [0, %overlap], [%step_next, %step_done]
  %pc = phi ptr [%code, %overlap], [%pc_next, %step_done]
  %finished = icmp eq i64 %step, %instructions
  br i1 %finished, label %answer, label %step_start
step_start:
  %kernel_word = call i64 @word(ptr %pc, i64 0)
  %kernel = inttoptr i64 %kernel_word to ptr
  %nbufs = call i64 @word(ptr %pc, i64 1)
  %slots = getelementptr i64, ptr %pc, i64 2
  br label %gather
gather:
  %g = phi i64 [0, %step_start], [%g_next, %gather_body]
  %gathered = icmp eq i64 %g, %nbufs
  br i1 %gathered, label %call, label %gather_body
gather_body:
  %own_slot = call i64 @word(ptr %slots, i64 %g)
  %own_address = call i64 @word(ptr %frame, i64 %own_slot)
  call void @set_word(ptr %bufs, i64 %g, i64 %own_address)
  %g_next = add i64 %g, 1
  br label %gather
call:
  %nints = call i64 @word(ptr %slots, i64 %nbufs)
  %after_slots = getelementptr i64, ptr %slots, i64 %nbufs
  %ints = getelementptr i64, ptr %after_slots, i64 1
  %pc_next = getelementptr i64, ptr %ints, i64 %nints
  %status = call i64 @run_kernel(ptr %kernel, ptr %bufs, ptr %ints)
  %step_next = add i64 %step, 1
  %ok = icmp eq i64 %status, 0
  br i1 %ok, label %step_done, label %step_failed
step_done:
  br label %execute
step_failed:
  %low = and i64 %status, 4294967295
  %high = shl i64 %step_next, 32
  %packed = or i64 %high, %low
  br label %answer
answer:
  %answer_value = phi i64 [%odd_code, %wrong_count], [%forget_code, %forget_end], [0, %execute],
                          [%packed, %step_failed]
  %result = call ptr @twingrad_PyLong_FromLongLong(i64 %answer_value)
  ret ptr %result
}
"""
