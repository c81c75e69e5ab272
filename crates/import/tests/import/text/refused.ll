; What has no counterpart in the Loop IR is refused with a code.

define internal void @unknown_type(ptr %p) {
  %1 = load i256, ptr %p, align 8
  %2 = add i256 %1, 1
  store i256 %2, ptr %p, align 8
  ret void
}

define internal i256 @unknown_signature(i256 %x) {
  ret i256 %x
}

define internal void @unknown_instruction(ptr %p, i64 %n) {
entry:
  %target = select i1 true, ptr blockaddress(@unknown_instruction, %a), ptr blockaddress(@unknown_instruction, %b)
  indirectbr ptr %target, [label %a, label %b]
a:
  store i64 1, ptr %p, align 8
  ret void
b:
  store i64 2, ptr %p, align 8
  ret void
}

define void @root(ptr %p, i64 %n) {
  call void @unknown_type(ptr %p)
  store ptr @unknown_signature, ptr %p, align 8
  call void @unknown_instruction(ptr %p, i64 %n)
  ret void
}
