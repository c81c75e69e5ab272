// Differentiates with a context that another file made.
double __enzyme_autodiff(void *, ...);
extern int enzyme_context;

static double factor = 3;
static double product(double x) { return factor * x; }

double differentiated(void *context) { return __enzyme_autodiff((void *)product, enzyme_context, context, 2.0); }
