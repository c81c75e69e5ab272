; Short vectors.

define double @lanes(<2 x double> %v, double %x) {
  %1 = insertelement <2 x double> %v, double %x, i64 1
  %2 = shufflevector <2 x double> %1, <2 x double> poison, <2 x i32> <i32 1, i32 poison>
  %3 = fmul <2 x double> %2, <double 2.0, double 3.0>
  %4 = extractelement <2 x double> %3, i32 0
  %5 = call double @llvm.vector.reduce.fadd.v2f64(double %4, <2 x double> %3)
  %6 = call fast double @llvm.vector.reduce.fadd.v2f64(double %5, <2 x double> %3)
  %7 = call double @llvm.vector.reduce.fmax.v2f64(<2 x double> %3)
  %8 = fadd double %6, %7
  ret double %8
}

define <2 x ptr> @addresses(ptr %p, <2 x i64> %i) {
  %1 = insertelement <2 x ptr> poison, ptr %p, i64 0
  %2 = getelementptr double, <2 x ptr> %1, <2 x i64> %i
  ret <2 x ptr> %2
}

; In memory, bits stand side by side.
define <16 x i1> @bits(ptr %p, <16 x i8> %v) {
  %1 = icmp slt <16 x i8> %v, zeroinitializer
  store <16 x i1> %1, ptr %p, align 2
  %2 = load <16 x i1>, ptr %p, align 2
  ret <16 x i1> %2
}
