"""The native builtins of `common.native.calls`: LLVM IR text against the C layout of CPython and numpy.

Offsets in bytes (all checked at run time by `common.native.abi` before this code is used): PyObject type 8;
tuple item 0 24; bytes data 32; float value 16; ndarray data 16, nd 24, dimensions 32, descr 56, flags 64; the
eight bytes of a descr from 24 on hold kind, type character, byte order and type number, which together
identify a native dtype.

``self`` of each builtin is a tuple whose first item is a bytes object: a table of int64 words, described at
each function.  The other items only keep alive what the table points to.
"""

from __future__ import annotations

MAX_BUFFERS = 64
MAX_INPUTS = 8
BAD_ARGUMENT = 1_000_000
OVERLAP = 2_000_000
RAISED = 0xFFFFFFFF

_PRELUDE = """
@twingrad_PyArray_Type = external global i8
@twingrad_PyLong_Type = external global i8
@twingrad_PyFloat_Type = external global i8
@twingrad_Py_None = external global i8
declare ptr @twingrad_PyLong_FromLongLong(i64)
declare i64 @twingrad_PyLong_AsLongLong(ptr)
declare ptr @twingrad_PyErr_Occurred()
declare void @twingrad_Py_IncRef(ptr)
declare void @twingrad_Py_DecRef(ptr)
declare ptr @twingrad_PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)

define internal i64 @word(ptr %base, i64 %index) alwaysinline {
  %p = getelementptr i64, ptr %base, i64 %index
  %v = load i64, ptr %p
  ret i64 %v
}
define internal void @set_word(ptr %base, i64 %index, i64 %value) alwaysinline {
  %p = getelementptr i64, ptr %base, i64 %index
  store i64 %value, ptr %p
  ret void
}
define internal ptr @pointer_at(ptr %object, i64 %offset) alwaysinline {
  %p = getelementptr i8, ptr %object, i64 %offset
  %v = load ptr, ptr %p
  ret ptr %v
}
define internal ptr @table_of(ptr %self) alwaysinline {
  %bytes = call ptr @pointer_at(ptr %self, i64 24)
  %table = getelementptr i8, ptr %bytes, i64 32
  ret ptr %table
}
define internal i1 @has_type(ptr %object, ptr %type) alwaysinline {
  %own = call ptr @pointer_at(ptr %object, i64 8)
  %same = icmp eq ptr %own, %type
  ret i1 %same
}
; an exact ndarray with the given descr word and at least the given flags
define internal i1 @is_array(ptr %object, i64 %descr_word, i32 %flags) alwaysinline {
entry:
  %exact = call i1 @has_type(ptr %object, ptr @twingrad_PyArray_Type)
  br i1 %exact, label %array, label %no
array:
  %descr = call ptr @pointer_at(ptr %object, i64 56)
  %own_word = call i64 @word(ptr %descr, i64 3)
  %same_dtype = icmp eq i64 %own_word, %descr_word
  %flags_p = getelementptr i8, ptr %object, i64 64
  %own_flags = load i32, ptr %flags_p
  %masked = and i32 %own_flags, %flags
  %same_flags = icmp eq i32 %masked, %flags
  %good = and i1 %same_dtype, %same_flags
  ret i1 %good
no:
  ret i1 false
}
define internal i1 @same_words(ptr %a, ptr %b, i64 %count) alwaysinline {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %body]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %yes, label %body
body:
  %x = call i64 @word(ptr %a, i64 %i)
  %y = call i64 @word(ptr %b, i64 %i)
  %next = add i64 %i, 1
  %same = icmp eq i64 %x, %y
  br i1 %same, label %loop, label %no
yes:
  ret i1 true
no:
  ret i1 false
}
; the status of one kernel; RAISED if numba's calling convention reports an exception, which kernels never do
define internal i64 @run_kernel(ptr %kernel, ptr %bufs, ptr %ints) alwaysinline {
  %status = alloca i64
  %exception = alloca ptr
  %code = call i32 %kernel(ptr %status, ptr %exception, ptr %bufs, ptr %ints)
  %raised = icmp ne i32 %code, 0
  %value = load i64, ptr %status
  %result = select i1 %raised, i64 4294967295, i64 %value
  ret i64 %result
}
"""

# f(*args): ndarrays -> bufs, ints -> args.  Table: [kernel].  Returns the status, -1 for other arguments.
_CALL = """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %bufs = alloca [64 x i64]
  %ints = alloca [64 x i64]
  %table = call ptr @table_of(ptr %self)
  %too_many = icmp ugt i64 %nargs, 64
  br i1 %too_many, label %refuse, label %loop
loop:
  %i = phi i64 [0, %entry], [%i_next, %next]
  %nb = phi i64 [0, %entry], [%nb_next, %next]
  %ni = phi i64 [0, %entry], [%ni_next, %next]
  %end = icmp eq i64 %i, %nargs
  br i1 %end, label %run, label %item
item:
  %arg_word = call i64 @word(ptr %args, i64 %i)
  %arg = inttoptr i64 %arg_word to ptr
  %is_array = call i1 @has_type(ptr %arg, ptr @twingrad_PyArray_Type)
  br i1 %is_array, label %array, label %other
array:
  %data = call i64 @word(ptr %arg, i64 2)
  call void @set_word(ptr %bufs, i64 %nb, i64 %data)
  %nb_more = add i64 %nb, 1
  br label %next
other:
  %is_int = call i1 @has_type(ptr %arg, ptr @twingrad_PyLong_Type)
  br i1 %is_int, label %int, label %refuse
int:
  %value = call i64 @twingrad_PyLong_AsLongLong(ptr %arg)
  call void @set_word(ptr %ints, i64 %ni, i64 %value)
  %ni_more = add i64 %ni, 1
  %doubtful = icmp eq i64 %value, -1
  br i1 %doubtful, label %maybe_error, label %next
maybe_error:
  %error = call ptr @twingrad_PyErr_Occurred()
  %no_error = icmp eq ptr %error, null
  br i1 %no_error, label %next, label %fail
next:
  %nb_next = phi i64 [%nb_more, %array], [%nb, %int], [%nb, %maybe_error]
  %ni_next = phi i64 [%ni, %array], [%ni_more, %int], [%ni_more, %maybe_error]
  %i_next = add i64 %i, 1
  br label %loop
run:
  %kernel_word = call i64 @word(ptr %table, i64 0)
  %kernel = inttoptr i64 %kernel_word to ptr
  %status = call i64 @run_kernel(ptr %kernel, ptr %bufs, ptr %ints)
  br label %answer
refuse:
  br label %answer
answer:
  %answer_value = phi i64 [%status, %run], [-1, %refuse]
  %result = call ptr @twingrad_PyLong_FromLongLong(i64 %answer_value)
  ret ptr %result
fail:
  ret ptr null
}
"""

# f(*arrays) -> ndarray | status | None.
# Table: [inputs, full kernel, left-scalar kernel, right-scalar kernel, result descr, inputs' descr words].
_ELEMENTWISE = """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %bufs = alloca [9 x i64]
  %ints = alloca [1 x i64]
  %table = call ptr @table_of(ptr %self)
  %inputs = call i64 @word(ptr %table, i64 0)
  %right_count = icmp eq i64 %inputs, %nargs
  br i1 %right_count, label %loop, label %refuse
loop:
  %i = phi i64 [0, %entry], [%i_next, %good]
  %end = icmp eq i64 %i, %inputs
  br i1 %end, label %shapes, label %item
item:
  %arg_word = call i64 @word(ptr %args, i64 %i)
  %arg = inttoptr i64 %arg_word to ptr
  %slot = add i64 %i, 5
  %expected = call i64 @word(ptr %table, i64 %slot)
  %is_good = call i1 @is_array(ptr %arg, i64 %expected, i32 257)
  br i1 %is_good, label %good, label %refuse
good:
  %data = call i64 @word(ptr %arg, i64 2)
  call void @set_word(ptr %bufs, i64 %i, i64 %data)
  %i_next = add i64 %i, 1
  br label %loop
shapes:
  %first_word = call i64 @word(ptr %args, i64 0)
  %first = inttoptr i64 %first_word to ptr
  %nd_p = getelementptr i8, ptr %first, i64 24
  %nd = load i32, ptr %nd_p
  %nd64 = zext i32 %nd to i64
  %dims = call ptr @pointer_at(ptr %first, i64 32)
  %full = call i64 @word(ptr %table, i64 1)
  br label %compare
compare:
  %j = phi i64 [1, %shapes], [%j_next, %same_rank]
  %all_same = icmp eq i64 %j, %inputs
  br i1 %all_same, label %make, label %compare_item
compare_item:
  %other_word = call i64 @word(ptr %args, i64 %j)
  %other = inttoptr i64 %other_word to ptr
  %other_nd_p = getelementptr i8, ptr %other, i64 24
  %other_nd = load i32, ptr %other_nd_p
  %other_dims = call ptr @pointer_at(ptr %other, i64 32)
  %j_next = add i64 %j, 1
  %rank_equal = icmp eq i32 %nd, %other_nd
  br i1 %rank_equal, label %same_rank, label %scalar
same_rank:
  %dims_equal = call i1 @same_words(ptr %dims, ptr %other_dims, i64 %nd64)
  br i1 %dims_equal, label %compare, label %refuse
scalar:
  %binary = icmp eq i64 %inputs, 2
  br i1 %binary, label %scalar_binary, label %refuse
scalar_binary:
  %is_left = icmp eq i32 %nd, 0
  %is_right = icmp eq i32 %other_nd, 0
  %one_scalar = or i1 %is_left, %is_right
  br i1 %one_scalar, label %scalar_kernel, label %refuse
scalar_kernel:
  %left_kernel = call i64 @word(ptr %table, i64 2)
  %right_kernel = call i64 @word(ptr %table, i64 3)
  %scalar_address = select i1 %is_left, i64 %left_kernel, i64 %right_kernel
  %scalar_nd = select i1 %is_left, i32 %other_nd, i32 %nd
  %scalar_dims = select i1 %is_left, ptr %other_dims, ptr %dims
  %exists = icmp ne i64 %scalar_address, 0
  br i1 %exists, label %make, label %refuse
make:
  %kernel_word = phi i64 [%full, %compare], [%scalar_address, %scalar_kernel]
  %out_nd = phi i32 [%nd, %compare], [%scalar_nd, %scalar_kernel]
  %out_dims = phi ptr [%dims, %compare], [%scalar_dims, %scalar_kernel]
  %out_nd64 = zext i32 %out_nd to i64
  br label %product
product:
  %k = phi i64 [0, %make], [%k_next, %product_body]
  %n = phi i64 [1, %make], [%n_next, %product_body]
  %product_end = icmp eq i64 %k, %out_nd64
  br i1 %product_end, label %allocate, label %product_body
product_body:
  %dim = call i64 @word(ptr %out_dims, i64 %k)
  %n_next = mul i64 %n, %dim
  %k_next = add i64 %k, 1
  br label %product
allocate:
  %descr_word = call i64 @word(ptr %table, i64 4)
  %descr = inttoptr i64 %descr_word to ptr
  call void @twingrad_Py_IncRef(ptr %descr)
  %out = call ptr @twingrad_PyArray_NewFromDescr(ptr @twingrad_PyArray_Type, ptr %descr, i32 %out_nd,
                                                 ptr %out_dims, ptr null, ptr null, i32 0, ptr null)
  %no_memory = icmp eq ptr %out, null
  br i1 %no_memory, label %fail, label %run
run:
  %out_data = call i64 @word(ptr %out, i64 2)
  call void @set_word(ptr %bufs, i64 %inputs, i64 %out_data)
  call void @set_word(ptr %ints, i64 0, i64 %n)
  %kernel = inttoptr i64 %kernel_word to ptr
  %status = call i64 @run_kernel(ptr %kernel, ptr %bufs, ptr %ints)
  %ok = icmp eq i64 %status, 0
  br i1 %ok, label %done, label %failed
done:
  ret ptr %out
failed:
  call void @twingrad_Py_DecRef(ptr %out)
  %result = call ptr @twingrad_PyLong_FromLongLong(i64 %status)
  ret ptr %result
refuse:
  call void @twingrad_Py_IncRef(ptr @twingrad_Py_None)
  ret ptr @twingrad_Py_None
fail:
  ret ptr null
}
"""

# f(*arguments) -> 0 | BAD_ARGUMENT + index | OVERLAP + index | (instruction + 1) << 32 | status.
# Table: [arguments, instructions, frame, last, records, code, bytes, writes]; frame and last are addresses,
# the other four offsets in words.  Record: [kind, descr word or cell address, nd, flags, slot, dims...].
# Instruction: [kernel, buffers, slots..., ints, values...].
# last[i] is the data address with which argument i passed the overlap check; behind it: list of changed ones.
_RUN = """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %bufs = alloca [64 x i64]
  %table = call ptr @table_of(ptr %self)
  %count = call i64 @word(ptr %table, i64 0)
  %instructions = call i64 @word(ptr %table, i64 1)
  %frame_word = call i64 @word(ptr %table, i64 2)
  %frame = inttoptr i64 %frame_word to ptr
  %last_word = call i64 @word(ptr %table, i64 3)
  %last = inttoptr i64 %last_word to ptr
  %changed = getelementptr i64, ptr %last, i64 %count
  %records_offset = call i64 @word(ptr %table, i64 4)
  %records = getelementptr i64, ptr %table, i64 %records_offset
  %code_offset = call i64 @word(ptr %table, i64 5)
  %code = getelementptr i64, ptr %table, i64 %code_offset
  %bytes_offset = call i64 @word(ptr %table, i64 6)
  %bytes = getelementptr i64, ptr %table, i64 %bytes_offset
  %writes_offset = call i64 @word(ptr %table, i64 7)
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

SYMBOLS = ("call", "elementwise", "run")


def module_text(symbol: str) -> str:
    """Return the LLVM IR of one builtin: ``call``, ``elementwise`` or ``run``."""
    body = {"call": _CALL, "elementwise": _ELEMENTWISE, "run": _RUN}[symbol]
    return _PRELUDE + body.replace("SYMBOL", f"twingrad_builtin_{symbol}")
