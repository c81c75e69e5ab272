; Aggregates are their leaves: as arguments, as results, in memory, and in phis.

%pair = type { i64, { double, ptr } }

define { i64, double } @swap({ double, i64 } %x) {
  %a = extractvalue { double, i64 } %x, 0
  %b = extractvalue { double, i64 } %x, 1
  %1 = insertvalue { i64, double } poison, i64 %b, 0
  %2 = insertvalue { i64, double } %1, double %a, 1
  ret { i64, double } %2
}

define double @calls(double %a) {
  %1 = insertvalue { double, i64 } { double undef, i64 7 }, double %a, 0
  %2 = call { i64, double } @swap({ double, i64 } %1)
  %3 = extractvalue { i64, double } %2, 1
  ret double %3
}

define double @memory(ptr %p, i1 %c) {
entry:
  %x = load %pair, ptr %p, align 8
  br i1 %c, label %then, label %join
then:
  %y = insertvalue %pair %x, double 2.0, 1, 0
  br label %join
join:
  %z = phi %pair [ %x, %entry ], [ %y, %then ]
  store %pair %z, ptr %p, align 8
  %r = extractvalue %pair %z, 1, 0
  ret double %r
}

define void @array(ptr %p, [2 x float] %v) {
  store [2 x float] %v, ptr %p, align 4
  ret void
}

%big = type { [4 x double] }
declare void @takes(ptr byval(%big) align 8)

define void @by_value(ptr %p) {
  call void @takes(ptr byval(%big) align 8 %p)
  ret void
}
