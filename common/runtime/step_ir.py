"""Parts of the builtin that runs a program: the Python objects of a bound one. LLVM IR text.

A bound program (`common.runtime.bound_program`) finds its state in Python objects, makes its results, and leaves
gradients in tensors. What can run other Python code comes first and last: objects are made before an address is read,
and what is replaced is let go of after everything is in its place.

Words of a record: kind, descr word or cell address, nd, flags, slot, source, address of a slot, target, descr, dims...
Words of a binding: results, things to leave, those among them that are gradients, whether there is one result, not a
tuple, template, its words, which of these is the payload, first output, offset of its record in the table, where weak
references to a tensor start (since Python 3.12 before the object), which of its words says that it requires grad (0:
results are arrays, and no tensors are taken), slot addresses...
"""

from __future__ import annotations

OBJECTS = """
define internal ptr @item(ptr %tuple, i64 %index) alwaysinline {
  %items = getelementptr i8, ptr %tuple, i64 24
  %v = call i64 @word(ptr %items, i64 %index)
  %p = inttoptr i64 %v to ptr
  ret ptr %p
}
define internal void @set_item(ptr %tuple, i64 %index, ptr %value) alwaysinline {
  %items = getelementptr i8, ptr %tuple, i64 24
  %v = ptrtoint ptr %value to i64
  call void @set_word(ptr %items, i64 %index, i64 %v)
  ret void
}
define internal ptr @payload_of(ptr %binding, ptr %tensor) alwaysinline {
  %payload = call i64 @word(ptr %binding, i64 6)
  %v = call i64 @word(ptr %tensor, i64 %payload)
  %p = inttoptr i64 %v to ptr
  ret ptr %p
}
define internal void @set_payload(ptr %binding, ptr %tensor, ptr %array) alwaysinline {
  %payload = call i64 @word(ptr %binding, i64 6)
  %data = ptrtoint ptr %array to i64
  call void @set_word(ptr %tensor, i64 %payload, i64 %data)
  ret void
}
; keep an array, whose reference it takes, as a result; a result that is a tensor is there already
define internal void @set_result(ptr %binding, ptr %result, i64 %target, ptr %array) alwaysinline {
  %tensors = call i64 @word(ptr %binding, i64 10)
  %as_tensor = icmp ne i64 %tensors, 0
  br i1 %as_tensor, label %in_tensor, label %as_array
in_tensor:
  %tensor = call ptr @item(ptr %result, i64 %target)
  call void @set_payload(ptr %binding, ptr %tensor, ptr %array)
  ret void
as_array:
  call void @set_item(ptr %result, i64 %target, ptr %array)
  ret void
}
; the array of a result
define internal ptr @array_of(ptr %binding, ptr %result, i64 %target) alwaysinline {
  %item = call ptr @item(ptr %result, i64 %target)
  %tensors = call i64 @word(ptr %binding, i64 10)
  %as_tensor = icmp ne i64 %tensors, 0
  br i1 %as_tensor, label %in_tensor, label %as_array
in_tensor:
  %array = call ptr @payload_of(ptr %binding, ptr %item)
  ret ptr %array
as_array:
  ret ptr %item
}
; the array of an argument that is a tensor which does not require grad, where tensors are taken; else what it is
define internal ptr @given_array(ptr %binding, ptr %given) alwaysinline {
  %template_word = call i64 @word(ptr %binding, i64 4)
  %wants = call i64 @word(ptr %binding, i64 10)
  %template = inttoptr i64 %template_word to ptr
  %type = call ptr @pointer_at(ptr %template, i64 8)
  %is_tensor = call i1 @has_type(ptr %given, ptr %type)
  %taken = icmp ne i64 %wants, 0
  %may = and i1 %is_tensor, %taken
  br i1 %may, label %look, label %as_it_is
look:
  %own = call i64 @word(ptr %given, i64 %wants)
  %expected = call i64 @word(ptr %template, i64 %wants)
  %same = icmp eq i64 %own, %expected
  br i1 %same, label %payload, label %as_it_is
payload:
  %array = call ptr @payload_of(ptr %binding, ptr %given)
  ret ptr %array
as_it_is:
  ret ptr %given
}
; a new array for a record, null if there is no memory
define internal ptr @array_for(ptr %record) {
  %nd = call i64 @word(ptr %record, i64 2)
  %descr_word = call i64 @word(ptr %record, i64 8)
  %dims = getelementptr i64, ptr %record, i64 9
  %new = call ptr @new_array(i64 %descr_word, i64 %nd, ptr %dims)
  ret ptr %new
}
; a tensor like the template over an array, whose reference it takes; null if there is no memory
define internal ptr @new_tensor(ptr %binding, ptr %array) {
entry:
  %template_word = call i64 @word(ptr %binding, i64 4)
  %template = inttoptr i64 %template_word to ptr
  %words = call i64 @word(ptr %binding, i64 5)
  %payload = call i64 @word(ptr %binding, i64 6)
  %type = call ptr @pointer_at(ptr %template, i64 8)
  %new = call ptr @twingrad_PyType_GenericAlloc(ptr %type, i64 0)
  %no_memory = icmp eq ptr %new, null
  br i1 %no_memory, label %failed, label %loop
loop:
  %w = phi i64 [2, %entry], [%w_next, %next]
  %end = icmp eq i64 %w, %words
  br i1 %end, label %done, label %slot
slot:
  %w_next = add i64 %w, 1
  %is_payload = icmp eq i64 %w, %payload
  br i1 %is_payload, label %next, label %copy
copy:
  %value = call i64 @word(ptr %template, i64 %w)
  %object = inttoptr i64 %value to ptr
  %is_set = icmp ne i64 %value, 0
  br i1 %is_set, label %shared, label %next
shared:
  call void @twingrad_Py_IncRef(ptr %object)
  call void @set_word(ptr %new, i64 %w, i64 %value)
  br label %next
next:
  br label %loop
done:
  %data = ptrtoint ptr %array to i64
  call void @set_word(ptr %new, i64 %payload, i64 %data)
  ret ptr %new
failed:
  call void @twingrad_Py_DecRef(ptr %array)
  ret ptr null
}
; the array of a tensor that only its slot refers to, and which is as the template but for an array of the record's form
; that owns its memory, and to which only the tensor refers; else null
define internal ptr @reusable(ptr %binding, ptr %record, ptr %tensor) {
entry:
  %absent = icmp eq ptr %tensor, null
  br i1 %absent, label %no, label %count
count:
  %references = call i64 @word(ptr %tensor, i64 0)
  %weak_place = call i64 @word(ptr %binding, i64 9)
  %weak = call i64 @word(ptr %tensor, i64 %weak_place)
  %one = icmp eq i64 %references, 1
  %unseen = icmp eq i64 %weak, 0
  %alone = and i1 %one, %unseen
  br i1 %alone, label %look, label %no
look:
  %template_word = call i64 @word(ptr %binding, i64 4)
  %template = inttoptr i64 %template_word to ptr
  %words = call i64 @word(ptr %binding, i64 5)
  %payload = call i64 @word(ptr %binding, i64 6)
  br label %loop
loop:
  %w = phi i64 [1, %look], [%w_next, %slot], [%w_next, %compare]
  %end = icmp eq i64 %w, %words
  br i1 %end, label %payload_found, label %slot
slot:
  %w_next = add i64 %w, 1
  %is_payload = icmp eq i64 %w, %payload
  br i1 %is_payload, label %loop, label %compare
compare:
  %own = call i64 @word(ptr %tensor, i64 %w)
  %expected = call i64 @word(ptr %template, i64 %w)
  %same = icmp eq i64 %own, %expected
  br i1 %same, label %loop, label %no
payload_found:
  %array = call ptr @payload_of(ptr %binding, ptr %tensor)
  %no_array = icmp eq ptr %array, null
  br i1 %no_array, label %no, label %array_count
array_count:
  %array_references = call i64 @word(ptr %array, i64 0)
  %array_alone = icmp eq i64 %array_references, 1
  br i1 %array_alone, label %array_form, label %no
array_form:
  %descr_word = call i64 @word(ptr %record, i64 1)
  %is_good = call i1 @is_array(ptr %array, i64 %descr_word, i32 1285)
  br i1 %is_good, label %array_memory, label %no
array_memory:
  %base = call i64 @word(ptr %array, i64 6)
  %array_weak = call i64 @word(ptr %array, i64 9)
  %either = or i64 %base, %array_weak
  %own_memory = icmp eq i64 %either, 0
  br i1 %own_memory, label %array_sizes, label %no
array_sizes:
  %nd = call i64 @word(ptr %record, i64 2)
  %dims = getelementptr i64, ptr %record, i64 9
  %fits = call i1 @has_sizes(ptr %array, i64 %nd, ptr %dims)
  br i1 %fits, label %yes, label %no
yes:
  ret ptr %array
no:
  ret ptr null
}
; the tensor in whose memory the gradient of a record may be left
define internal ptr @old_gradient(ptr %binding, ptr %record) {
entry:
  %source = call i64 @word(ptr %record, i64 5)
  %may = icmp eq i64 %source, 4
  br i1 %may, label %look, label %no
look:
  %cell = call i64 @word(ptr %record, i64 6)
  %cell_p = inttoptr i64 %cell to ptr
  %tensor = load ptr, ptr %cell_p
  %array = call ptr @reusable(ptr %binding, ptr %record, ptr %tensor)
  ret ptr %array
no:
  ret ptr null
}
; put new tensors into the result if it has tensors; false if there is no memory
define internal i1 @make_tensors(ptr %binding, ptr %result) {
entry:
  %results = call i64 @word(ptr %binding, i64 0)
  %tensors = call i64 @word(ptr %binding, i64 10)
  %as_tensors = icmp ne i64 %tensors, 0
  br i1 %as_tensors, label %loop, label %done
loop:
  %k = phi i64 [0, %entry], [%k_next, %made]
  %end = icmp eq i64 %k, %results
  br i1 %end, label %done, label %one
one:
  %tensor = call ptr @new_tensor(ptr %binding, ptr null)
  %no_memory = icmp eq ptr %tensor, null
  br i1 %no_memory, label %failed, label %made
made:
  call void @set_item(ptr %result, i64 %k, ptr %tensor)
  %k_next = add i64 %k, 1
  br label %loop
done:
  ret i1 true
failed:
  ret i1 false
}
; put new arrays into the result, new gradients among the things to leave; false if there is no memory
define internal i1 @make_objects(ptr %table, ptr %binding, ptr %result, ptr %left) {
entry:
  %count = call i64 @word(ptr %table, i64 0)
  %things = call i64 @word(ptr %binding, i64 1)
  %gradients = call i64 @word(ptr %binding, i64 2)
  %first = call i64 @word(ptr %binding, i64 7)
  %first_record = call i64 @word(ptr %binding, i64 8)
  %records = getelementptr i64, ptr %table, i64 %first_record
  %has_tensors = call i1 @make_tensors(ptr %binding, ptr %result)
  br i1 %has_tensors, label %loop, label %failed
loop:
  %i = phi i64 [%first, %entry], [%i_next, %next]
  %record = phi ptr [%records, %entry], [%record_next, %next]
  %end = icmp eq i64 %i, %count
  br i1 %end, label %clear, label %output
output:
  %nd = call i64 @word(ptr %record, i64 2)
  %source = call i64 @word(ptr %record, i64 5)
  %target = call i64 @word(ptr %record, i64 7)
  %shape = getelementptr i64, ptr %record, i64 9
  %record_next = getelementptr i64, ptr %shape, i64 %nd
  %i_next = add i64 %i, 1
  switch i64 %source, label %next [i64 3, label %made i64 4, label %gradient i64 5, label %gradient]
made:
  %array = call ptr @array_for(ptr %record)
  call void @set_result(ptr %binding, ptr %result, i64 %target, ptr %array)
  %no_array = icmp eq ptr %array, null
  br i1 %no_array, label %failed, label %next
gradient:
  %old = call ptr @old_gradient(ptr %binding, ptr %record)
  %keeps = icmp ne ptr %old, null
  br i1 %keeps, label %next, label %new_gradient
new_gradient:
  %memory = call ptr @array_for(ptr %record)
  %no_memory = icmp eq ptr %memory, null
  br i1 %no_memory, label %failed, label %wrapped
wrapped:
  %tensor = call ptr @new_tensor(ptr %binding, ptr %memory)
  call void @set_item(ptr %left, i64 %target, ptr %tensor)
  %no_tensor = icmp eq ptr %tensor, null
  br i1 %no_tensor, label %failed, label %next
next:
  br label %loop
clear:
  %k = phi i64 [%gradients, %loop], [%k_next, %none]
  %all = icmp eq i64 %k, %things
  br i1 %all, label %done, label %none
none:
  call void @twingrad_Py_IncRef(ptr @twingrad_Py_None)
  call void @set_item(ptr %left, i64 %k, ptr @twingrad_Py_None)
  %k_next = add i64 %k, 1
  br label %clear
done:
  ret i1 true
failed:
  ret i1 false
}
; let slots and the things to leave change places
define internal void @leave(ptr %binding, ptr %left) {
entry:
  %things = call i64 @word(ptr %binding, i64 1)
  br label %loop
loop:
  %k = phi i64 [0, %entry], [%k_next, %thing], [%k_next, %swap]
  %end = icmp eq i64 %k, %things
  br i1 %end, label %done, label %thing
thing:
  %k_next = add i64 %k, 1
  %new = call ptr @item(ptr %left, i64 %k)
  %absent = icmp eq ptr %new, null
  br i1 %absent, label %loop, label %swap
swap:
  %place = add i64 %k, 11
  %cell = call i64 @word(ptr %binding, i64 %place)
  %cell_p = inttoptr i64 %cell to ptr
  %old = load ptr, ptr %cell_p
  store ptr %new, ptr %cell_p
  call void @set_item(ptr %left, i64 %k, ptr %old)
  br label %loop
done:
  ret void
}
"""
