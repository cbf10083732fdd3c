"""Builtins that make arrays: views, and the results of ops that are a few kernels. LLVM IR text, read with `calls_ir`.

``view``: f(x) -> view | None.
Table: [descr word, nd, dims..., strides..., offset, out nd, writable, out dims..., out strides...], strides and offset
in bytes, writable 0 or numpy's flag. None for anything but an exact ndarray of that dtype, those sizes and strides.

``steps``: f(*arrays) -> ndarray | None.
Table: [inputs, steps, result descr, out nd, out dims..., per input: descr word, nd, dims..., per step: kernel, buffers,
slots..., ints, values...]. Slots count inputs, then the result. None for operands of another form, and as soon as a
kernel's status is not 0.

``extent``: f(array) -> (low, high) | None, the addresses between which an array lies.
Table: [dtypes, per dtype: descr word, bytes].
"""

from __future__ import annotations

VIEW = """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %table = call ptr @table_of(ptr %self)
  %one = icmp eq i64 %nargs, 1
  br i1 %one, label %kind, label %refuse
kind:
  %x_word = call i64 @word(ptr %args, i64 0)
  %x = inttoptr i64 %x_word to ptr
  %descr_word = call i64 @word(ptr %table, i64 0)
  %is_good = call i1 @is_array(ptr %x, i64 %descr_word, i32 0)
  br i1 %is_good, label %sizes, label %refuse
sizes:
  %nd = call i64 @word(ptr %table, i64 1)
  %dims = getelementptr i64, ptr %table, i64 2
  %same_dims = call i1 @has_sizes(ptr %x, i64 %nd, ptr %dims)
  br i1 %same_dims, label %steps, label %refuse
steps:
  %strides = getelementptr i64, ptr %dims, i64 %nd
  %own_strides = call ptr @pointer_at(ptr %x, i64 40)
  %same_strides = call i1 @same_words(ptr %own_strides, ptr %strides, i64 %nd)
  br i1 %same_strides, label %make, label %refuse
make:
  %rest = getelementptr i64, ptr %strides, i64 %nd
  %offset = call i64 @word(ptr %rest, i64 0)
  %out_nd = call i64 @word(ptr %rest, i64 1)
  %out_nd32 = trunc i64 %out_nd to i32
  %may_write = call i64 @word(ptr %rest, i64 2)
  %may_write32 = trunc i64 %may_write to i32
  %out_dims = getelementptr i64, ptr %rest, i64 3
  %out_strides = getelementptr i64, ptr %out_dims, i64 %out_nd
  %data = call ptr @pointer_at(ptr %x, i64 16)
  %out_data = getelementptr i8, ptr %data, i64 %offset
  %flags_p = getelementptr i8, ptr %x, i64 64
  %flags = load i32, ptr %flags_p
  %writeable = and i32 %flags, %may_write32
  %descr = call ptr @pointer_at(ptr %x, i64 56)
  call void @twingrad_Py_IncRef(ptr %descr)
  %out = call ptr @twingrad_PyArray_NewFromDescr(ptr @twingrad_PyArray_Type, ptr %descr, i32 %out_nd32, ptr %out_dims,
                                                 ptr %out_strides, ptr %out_data, i32 %writeable, ptr null)
  %no_memory = icmp eq ptr %out, null
  br i1 %no_memory, label %fail, label %keep
keep:
  call void @twingrad_Py_IncRef(ptr %x)
  %code = call i32 @twingrad_PyArray_SetBaseObject(ptr %out, ptr %x)
  %kept = icmp eq i32 %code, 0
  br i1 %kept, label %done, label %failed
done:
  ret ptr %out
failed:
  call void @twingrad_Py_DecRef(ptr %out)
  br label %fail
refuse:
  call void @twingrad_Py_IncRef(ptr @twingrad_Py_None)
  ret ptr @twingrad_Py_None
fail:
  ret ptr null
}
"""

STEPS = """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %bufs = alloca [64 x i64]
  %chosen = alloca [64 x i64]
  %table = call ptr @table_of(ptr %self)
  %inputs = call i64 @word(ptr %table, i64 0)
  %steps = call i64 @word(ptr %table, i64 1)
  %out_nd = call i64 @word(ptr %table, i64 3)
  %out_dims = getelementptr i64, ptr %table, i64 4
  %records = getelementptr i64, ptr %out_dims, i64 %out_nd
  %right_count = icmp eq i64 %inputs, %nargs
  br i1 %right_count, label %loop, label %refuse
loop:
  %i = phi i64 [0, %entry], [%i_next, %good]
  %record = phi ptr [%records, %entry], [%record_next, %good]
  %end = icmp eq i64 %i, %inputs
  br i1 %end, label %allocate, label %item
item:
  %arg_word = call i64 @word(ptr %args, i64 %i)
  %arg = inttoptr i64 %arg_word to ptr
  %expected = call i64 @word(ptr %record, i64 0)
  %nd = call i64 @word(ptr %record, i64 1)
  %dims = getelementptr i64, ptr %record, i64 2
  %record_next = getelementptr i64, ptr %dims, i64 %nd
  %is_good = call i1 @is_array(ptr %arg, i64 %expected, i32 257)
  br i1 %is_good, label %sizes, label %refuse
sizes:
  %same_dims = call i1 @has_sizes(ptr %arg, i64 %nd, ptr %dims)
  br i1 %same_dims, label %good, label %refuse
good:
  %data = call i64 @word(ptr %arg, i64 2)
  call void @set_word(ptr %bufs, i64 %i, i64 %data)
  %i_next = add i64 %i, 1
  br label %loop
allocate:
  %descr_word = call i64 @word(ptr %table, i64 2)
  %out = call ptr @new_array(i64 %descr_word, i64 %out_nd, ptr %out_dims)
  %no_memory = icmp eq ptr %out, null
  br i1 %no_memory, label %fail, label %start
start:
  %out_data = call i64 @word(ptr %out, i64 2)
  call void @set_word(ptr %bufs, i64 %inputs, i64 %out_data)
  br label %step
step:
  %k = phi i64 [0, %start], [%k_next, %run]
  %at = phi ptr [%record, %start], [%at_next, %run]
  %status = phi i64 [0, %start], [%step_status, %run]
  %failed_already = icmp ne i64 %status, 0
  br i1 %failed_already, label %failed, label %more
more:
  %finished = icmp eq i64 %k, %steps
  br i1 %finished, label %done, label %run
run:
  %kernel_word = call i64 @word(ptr %at, i64 0)
  %kernel = inttoptr i64 %kernel_word to ptr
  %count = call i64 @word(ptr %at, i64 1)
  %slots = getelementptr i64, ptr %at, i64 2
  call void @choose(ptr %chosen, ptr %bufs, ptr %slots, i64 %count)
  %ints = getelementptr i64, ptr %slots, i64 %count
  %ints_count = call i64 @word(ptr %ints, i64 0)
  %values = getelementptr i64, ptr %ints, i64 1
  %step_status = call i64 @run_kernel(ptr %kernel, ptr %chosen, ptr %values)
  %at_next = getelementptr i64, ptr %values, i64 %ints_count
  %k_next = add i64 %k, 1
  br label %step
done:
  ret ptr %out
failed:
  call void @twingrad_Py_DecRef(ptr %out)
  br label %refuse
refuse:
  call void @twingrad_Py_IncRef(ptr @twingrad_Py_None)
  ret ptr @twingrad_Py_None
fail:
  ret ptr null
}
"""

EXTENT = """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %table = call ptr @table_of(ptr %self)
  %one = icmp eq i64 %nargs, 1
  br i1 %one, label %kind, label %refuse
kind:
  %x_word = call i64 @word(ptr %args, i64 0)
  %x = inttoptr i64 %x_word to ptr
  %exact = call i1 @has_type(ptr %x, ptr @twingrad_PyArray_Type)
  br i1 %exact, label %dtype, label %refuse
dtype:
  %descr = call ptr @pointer_at(ptr %x, i64 56)
  %own_word = call i64 @word(ptr %descr, i64 3)
  %dtypes = call i64 @word(ptr %table, i64 0)
  br label %find
find:
  %f = phi i64 [0, %dtype], [%f_next, %other]
  %none_left = icmp eq i64 %f, %dtypes
  br i1 %none_left, label %refuse, label %try
try:
  %twice = shl i64 %f, 1
  %word_at = add i64 %twice, 1
  %size_at = add i64 %twice, 2
  %known = call i64 @word(ptr %table, i64 %word_at)
  %size = call i64 @word(ptr %table, i64 %size_at)
  %same = icmp eq i64 %known, %own_word
  br i1 %same, label %measure, label %other
other:
  %f_next = add i64 %f, 1
  br label %find
measure:
  %data = call i64 @word(ptr %x, i64 2)
  %nd = call i64 @rank_of(ptr %x)
  %dims = call ptr @pointer_at(ptr %x, i64 32)
  %strides = call ptr @pointer_at(ptr %x, i64 40)
  %end = add i64 %data, %size
  br label %loop
loop:
  %i = phi i64 [0, %measure], [%i_next, %body]
  %low = phi i64 [%data, %measure], [%low_next, %body]
  %high = phi i64 [%end, %measure], [%high_next, %body]
  %all = icmp eq i64 %i, %nd
  br i1 %all, label %pack, label %check
check:
  %dim = call i64 @word(ptr %dims, i64 %i)
  %empty = icmp eq i64 %dim, 0
  br i1 %empty, label %pack, label %body
body:
  %stride = call i64 @word(ptr %strides, i64 %i)
  %last = sub i64 %dim, 1
  %reach = mul i64 %last, %stride
  %up = icmp sgt i64 %reach, 0
  %above = select i1 %up, i64 %reach, i64 0
  %below = select i1 %up, i64 0, i64 %reach
  %high_next = add i64 %high, %above
  %low_next = add i64 %low, %below
  %i_next = add i64 %i, 1
  br label %loop
pack:
  %from = phi i64 [%low, %loop], [%data, %check]
  %to = phi i64 [%high, %loop], [%data, %check]
  %a = call ptr @twingrad_PyLong_FromLongLong(i64 %from)
  %b = call ptr @twingrad_PyLong_FromLongLong(i64 %to)
  %pair = call ptr (i64, ...) @twingrad_PyTuple_Pack(i64 2, ptr %a, ptr %b)
  call void @twingrad_Py_DecRef(ptr %a)
  call void @twingrad_Py_DecRef(ptr %b)
  ret ptr %pair
refuse:
  call void @twingrad_Py_IncRef(ptr @twingrad_Py_None)
  ret ptr @twingrad_Py_None
}
"""
