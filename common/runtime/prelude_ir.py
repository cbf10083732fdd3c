"""The prelude of native builtins: LLVM IR text that stands before each of them, see `common.runtime.builtins_ir`."""

from __future__ import annotations

PRELUDE = """
@twingrad_PyArray_Type = external global i8
@twingrad_PyLong_Type = external global i8
@twingrad_PyFloat_Type = external global i8
@twingrad_PyBool_Type = external global i8
@twingrad_Py_None = external global i8
declare ptr @twingrad_PyLong_FromLongLong(i64)
declare i64 @twingrad_PyLong_AsLongLong(ptr)
declare ptr @twingrad_PyErr_Occurred()
declare void @twingrad_PyErr_Clear()
declare i32 @twingrad_PyOS_InterruptOccurred()
declare void @twingrad_PyErr_SetInterrupt()
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @twingrad_Py_IncRef(ptr)
declare void @twingrad_Py_DecRef(ptr)
declare ptr @twingrad_PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i32 @twingrad_PyArray_SetBaseObject(ptr, ptr)
declare ptr @twingrad_PyTuple_Pack(i64, ...)
declare ptr @twingrad_PyTuple_New(i64)
declare ptr @twingrad_PyType_GenericAlloc(ptr, i64)

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
define internal i64 @rank_of(ptr %array) alwaysinline {
  %nd_p = getelementptr i8, ptr %array, i64 24
  %nd = load i32, ptr %nd_p
  %nd64 = zext i32 %nd to i64
  ret i64 %nd64
}
define internal i1 @has_sizes(ptr %array, i64 %nd, ptr %dims) alwaysinline {
entry:
  %own_nd = call i64 @rank_of(ptr %array)
  %same_rank = icmp eq i64 %own_nd, %nd
  br i1 %same_rank, label %sizes, label %no
sizes:
  %own_dims = call ptr @pointer_at(ptr %array, i64 32)
  %same_dims = call i1 @same_words(ptr %own_dims, ptr %dims, i64 %nd)
  ret i1 %same_dims
no:
  ret i1 false
}
; a new C-contiguous array of the dtype whose descr is at an address, null if there is no memory
define internal ptr @new_array(i64 %descr_word, i64 %nd, ptr %dims) alwaysinline {
  %descr = inttoptr i64 %descr_word to ptr
  %nd32 = trunc i64 %nd to i32
  call void @twingrad_Py_IncRef(ptr %descr)
  %new = call ptr @twingrad_PyArray_NewFromDescr(ptr @twingrad_PyArray_Type, ptr %descr, i32 %nd32, ptr %dims,
                                                 ptr null, ptr null, i32 0, ptr null)
  ret ptr %new
}
; the buffers of one kernel: those of the addresses whose numbers are at slots
define internal void @choose(ptr %bufs, ptr %addresses, ptr %slots, i64 %count) alwaysinline {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %body]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %done, label %body
body:
  %slot = call i64 @word(ptr %slots, i64 %i)
  %address = call i64 @word(ptr %addresses, i64 %slot)
  call void @set_word(ptr %bufs, i64 %i, i64 %address)
  %next = add i64 %i, 1
  br label %loop
done:
  ret void
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
