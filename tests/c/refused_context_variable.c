// refused: error: 'work' has no shadow in a context [FZ0616]
// Nobody knows a shadow of the memory that the program puts there.
#include <stdlib.h>

void *__enzyme_context(int);
void *__enzyme_shadow(void *, void *, int);
double __enzyme_autodiff(void *, ...);
extern int enzyme_context;

double *work;

double function(double x) { return x * work[0]; }

int main(void) {
  work = calloc(1, sizeof(double));
  void *context = __enzyme_context(1);
  double **shadow = __enzyme_shadow(context, &work, 0); // here
  return __enzyme_autodiff((void *)function, enzyme_context, context, 2.0) + (*shadow)[0] > 0;
}
