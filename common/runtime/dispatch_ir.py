"""The builtins of an eager op's short way: LLVM IR text, to be read with `common.runtime.builtins_ir`.

FIXED: ``f(*arrays) -> ndarray | None`` runs one kernel on operands of known forms; None, with nothing done, if one is
not an exact, C-contiguous, aligned ndarray of its dtype, or if the kernel's status is not 0. The shapes are the
caller's word. Table: [inputs, kernel, result descr, result nd, address of scratch or 0, offset of the kernel's ints,
inputs' descr words..., result dims..., ints...].

FIND: a table of objects by what an op is applied to: op and attributes by identity, arrays by dtype and shape,
numbers by type. ``f(op, attrs, *operands) -> object | None``; ``f(object, op, attrs, *operands)`` stores;
``f()`` clears. Table: [address of the cells, store]. A cell of 32 words: [object, words, key...]; an empty one has
object 0. A cell owns its object, and that must keep the attributes alive. A key is looked for in four cells from its
hash on; a new one takes the first of them that is empty, or the first.
"""

from __future__ import annotations

CELLS = 1024  # a power of 2
CELL_WORDS = 32
KEY_WORDS = 24
MAX_DIMS = 4

FIXED = """
define ptr @SYMBOL(ptr %self, ptr %args, i64 %nargs) {
entry:
  %bufs = alloca [10 x i64]
  %table = call ptr @table_of(ptr %self)
  %inputs = call i64 @word(ptr %table, i64 0)
  %right_count = icmp eq i64 %inputs, %nargs
  br i1 %right_count, label %loop, label %refuse
loop:
  %i = phi i64 [0, %entry], [%i_next, %good]
  %end = icmp eq i64 %i, %inputs
  br i1 %end, label %allocate, label %item
item:
  %arg_word = call i64 @word(ptr %args, i64 %i)
  %arg = inttoptr i64 %arg_word to ptr
  %slot = add i64 %i, 6
  %expected = call i64 @word(ptr %table, i64 %slot)
  %is_good = call i1 @is_array(ptr %arg, i64 %expected, i32 257)
  br i1 %is_good, label %good, label %refuse
good:
  %data = call i64 @word(ptr %arg, i64 2)
  call void @set_word(ptr %bufs, i64 %i, i64 %data)
  %i_next = add i64 %i, 1
  br label %loop
allocate:
  %kernel_word = call i64 @word(ptr %table, i64 1)
  %descr_word = call i64 @word(ptr %table, i64 2)
  %nd = call i64 @word(ptr %table, i64 3)
  %scratch = call i64 @word(ptr %table, i64 4)
  %ints_offset = call i64 @word(ptr %table, i64 5)
  %dims_offset = add i64 %inputs, 6
  %dims = getelementptr i64, ptr %table, i64 %dims_offset
  %ints = getelementptr i64, ptr %table, i64 %ints_offset
  %out = call ptr @new_array(i64 %descr_word, i64 %nd, ptr %dims)
  %no_memory = icmp eq ptr %out, null
  br i1 %no_memory, label %fail, label %run
run:
  %out_data = call i64 @word(ptr %out, i64 2)
  call void @set_word(ptr %bufs, i64 %inputs, i64 %out_data)
  %last = add i64 %inputs, 1
  call void @set_word(ptr %bufs, i64 %last, i64 %scratch)
  %kernel = inttoptr i64 %kernel_word to ptr
  %status = call i64 @run_kernel(ptr %kernel, ptr %bufs, ptr %ints)
  %ok = icmp eq i64 %status, 0
  br i1 %ok, label %done, label %failed
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

FIND = """
define internal void @add_word(ptr %key, ptr %count_p, ptr %hash_p, i64 %value) alwaysinline {
  %count = load i64, ptr %count_p
  call void @set_word(ptr %key, i64 %count, i64 %value)
  %more = add i64 %count, 1
  store i64 %more, ptr %count_p
  %hash = load i64, ptr %hash_p
  %mixed = xor i64 %hash, %value
  %spread = mul i64 %mixed, -7046029254386353131
  %high = lshr i64 %spread, 29
  %new = xor i64 %spread, %high
  store i64 %new, ptr %hash_p
  ret void
}
define ptr @SYMBOL(ptr %self, ptr %all, i64 %nall) {
entry:
  %key = alloca [KEY_WORDS x i64]
  %count_p = alloca i64
  %hash_p = alloca i64
  store i64 0, ptr %count_p
  store i64 0, ptr %hash_p
  %table = call ptr @table_of(ptr %self)
  %cells_word = call i64 @word(ptr %table, i64 0)
  %cells = inttoptr i64 %cells_word to ptr
  %store = call i64 @word(ptr %table, i64 1)
  %stores = icmp ne i64 %store, 0
  %args = getelementptr i64, ptr %all, i64 %store
  %nargs = sub i64 %nall, %store
  %object = call i64 @word(ptr %all, i64 0)
  %clears = icmp eq i64 %nall, 0
  br i1 %clears, label %clear, label %count_args
count_args:
  %enough = icmp sge i64 %nargs, 2
  br i1 %enough, label %begin, label %refuse
begin:
  %op = call i64 @word(ptr %args, i64 0)
  call void @add_word(ptr %key, ptr %count_p, ptr %hash_p, i64 %op)
  %attrs = call i64 @word(ptr %args, i64 1)
  call void @add_word(ptr %key, ptr %count_p, ptr %hash_p, i64 %attrs)
  br label %loop

loop:
  %i = phi i64 [2, %begin], [%i_next, %next]
  %end = icmp eq i64 %i, %nargs
  br i1 %end, label %probe, label %room
room:
  %used = load i64, ptr %count_p
  %fits = icmp sle i64 %used, ROOM
  br i1 %fits, label %item, label %refuse
item:
  %arg_word = call i64 @word(ptr %args, i64 %i)
  %arg = inttoptr i64 %arg_word to ptr
  %type = call ptr @pointer_at(ptr %arg, i64 8)
  %is_array = icmp eq ptr %type, @twingrad_PyArray_Type
  br i1 %is_array, label %array, label %number
array:
  %nd = call i64 @rank_of(ptr %arg)
  %few_dims = icmp ule i64 %nd, MAX_DIMS
  br i1 %few_dims, label %describe, label %refuse
describe:
  call void @add_word(ptr %key, ptr %count_p, ptr %hash_p, i64 %nd)
  %descr = call ptr @pointer_at(ptr %arg, i64 56)
  %descr_word = call i64 @word(ptr %descr, i64 3)
  call void @add_word(ptr %key, ptr %count_p, ptr %hash_p, i64 %descr_word)
  %dims = call ptr @pointer_at(ptr %arg, i64 32)
  br label %sizes
sizes:
  %d = phi i64 [0, %describe], [%d_next, %size]
  %sizes_end = icmp eq i64 %d, %nd
  br i1 %sizes_end, label %next, label %size
size:
  %n = call i64 @word(ptr %dims, i64 %d)
  call void @add_word(ptr %key, ptr %count_p, ptr %hash_p, i64 %n)
  %d_next = add i64 %d, 1
  br label %sizes
number:
  %is_float = icmp eq ptr %type, @twingrad_PyFloat_Type
  %is_int = icmp eq ptr %type, @twingrad_PyLong_Type
  %is_bool = icmp eq ptr %type, @twingrad_PyBool_Type
  %either = or i1 %is_float, %is_int
  %is_number = or i1 %either, %is_bool
  br i1 %is_number, label %add_number, label %refuse
add_number:
  %type_word = ptrtoint ptr %type to i64
  call void @add_word(ptr %key, ptr %count_p, ptr %hash_p, i64 %type_word)
  br label %next
next:
  %i_next = add i64 %i, 1
  br label %loop

probe:
  %hash = load i64, ptr %hash_p
  %words = load i64, ptr %count_p
  %top = lshr i64 %hash, 7
  %home_index = and i64 %top, MASK
  br label %cell_loop
cell_loop:
  %p = phi i64 [0, %probe], [%p_next, %other_cell]
  %at = add i64 %home_index, %p
  %index = and i64 %at, MASK
  %offset = mul i64 %index, CELL_WORDS
  %cell = getelementptr i64, ptr %cells, i64 %offset
  %found = call i64 @word(ptr %cell, i64 0)
  %empty = icmp eq i64 %found, 0
  br i1 %empty, label %at_empty, label %compare
compare:
  %its_words = call i64 @word(ptr %cell, i64 1)
  %as_long = icmp eq i64 %its_words, %words
  br i1 %as_long, label %compare_key, label %other_cell
compare_key:
  %its_key = getelementptr i64, ptr %cell, i64 2
  %same = call i1 @same_words(ptr %its_key, ptr %key, i64 %words)
  br i1 %same, label %at_same, label %other_cell
other_cell:
  %p_next = add i64 %p, 1
  %probed = icmp eq i64 %p_next, 4
  br i1 %probed, label %at_none, label %cell_loop
at_same:
  br i1 %stores, label %write, label %hit
hit:
  %answer = inttoptr i64 %found to ptr
  call void @twingrad_Py_IncRef(ptr %answer)
  ret ptr %answer
at_empty:
  br i1 %stores, label %write, label %refuse
at_none:
  %home_offset = mul i64 %home_index, CELL_WORDS
  %home = getelementptr i64, ptr %cells, i64 %home_offset
  br i1 %stores, label %write, label %refuse

write:
  %target = phi ptr [%cell, %at_same], [%cell, %at_empty], [%home, %at_none]
  %old_word = call i64 @word(ptr %target, i64 0)
  %new = inttoptr i64 %object to ptr
  call void @twingrad_Py_IncRef(ptr %new)
  call void @set_word(ptr %target, i64 0, i64 %object)
  call void @set_word(ptr %target, i64 1, i64 %words)
  br label %copy
copy:
  %k = phi i64 [0, %write], [%k_next, %copy_word]
  %copied = icmp eq i64 %k, %words
  br i1 %copied, label %drop_old, label %copy_word
copy_word:
  %value = call i64 @word(ptr %key, i64 %k)
  %place = add i64 %k, 2
  call void @set_word(ptr %target, i64 %place, i64 %value)
  %k_next = add i64 %k, 1
  br label %copy
drop_old:
  %had_old = icmp ne i64 %old_word, 0
  br i1 %had_old, label %release_old, label %refuse
release_old:
  %old = inttoptr i64 %old_word to ptr
  call void @twingrad_Py_DecRef(ptr %old)
  br label %refuse

clear:
  %c = phi i64 [0, %entry], [%c_next, %cleared]
  %all_clear = icmp eq i64 %c, CELLS
  br i1 %all_clear, label %refuse, label %clear_cell
clear_cell:
  %c_offset = mul i64 %c, CELL_WORDS
  %c_cell = getelementptr i64, ptr %cells, i64 %c_offset
  %c_word = call i64 @word(ptr %c_cell, i64 0)
  call void @set_word(ptr %c_cell, i64 0, i64 0)
  %c_full = icmp ne i64 %c_word, 0
  br i1 %c_full, label %release, label %cleared
release:
  %c_object = inttoptr i64 %c_word to ptr
  call void @twingrad_Py_DecRef(ptr %c_object)
  br label %cleared
cleared:
  %c_next = add i64 %c, 1
  br label %clear
refuse:
  call void @twingrad_Py_IncRef(ptr @twingrad_Py_None)
  ret ptr @twingrad_Py_None
}
"""

for _name, _value in {
    "CELL_WORDS": CELL_WORDS, "KEY_WORDS": KEY_WORDS, "CELLS": CELLS, "MAX_DIMS": MAX_DIMS, "MASK": CELLS - 1,
    "ROOM": KEY_WORDS - 2 - MAX_DIMS,
}.items():  # fmt: skip
    FIND = FIND.replace(_name, str(_value))
