; Arithmetic with its promises, comparisons, casts, choices.

define i64 @integers(i64 %a, i64 %b, i32 %c) {
  %1 = add nuw nsw i64 %a, %b
  %2 = sub nsw i64 %1, 5
  %3 = shl nuw i64 %2, 3
  %4 = lshr exact i64 %3, 1
  %5 = or disjoint i64 %4, 1
  %6 = or i64 %5, %a
  %7 = sext i32 %c to i64
  %8 = zext nneg i32 %c to i64
  %9 = icmp samesign ult i64 %7, %8
  %10 = select i1 %9, i64 %6, i64 %7
  %11 = freeze i64 %10
  %12 = udiv i64 %11, %8
  ret i64 %12
}

define double @floats(double %a, float %b) {
  %1 = fpext float %b to double
  %2 = fadd fast double %a, %1
  %3 = fmul reassoc nsz double %2, 0x3FB999999999999A
  %4 = fneg double %3
  %5 = fcmp ole double %4, %a
  %6 = fptosi double %a to i32
  %7 = uitofp i32 %6 to double
  %8 = select i1 %5, double %4, double %7
  %9 = fcmp true double %8, %a
  %10 = select i1 %9, double %8, double 0x7FF8000000000000
  ret double %10
}

define float @bits(i32 %a, ptr %p) {
  %1 = bitcast i32 %a to float
  %2 = ptrtoint ptr %p to i32
  %3 = bitcast i32 %2 to float
  %4 = frem float %1, %3
  ret float %4
}
