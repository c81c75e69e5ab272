// flags: -lm; with: parts/model.c
// The function to differentiate is defined in another file.
#include "check.h"
#include "parts/model.h"

extern int enzyme_dup, enzyme_const;
void __enzyme_autodiff(void *, ...);

int main(void) {
  double w[3] = {0.5, -1, 2}, dw[3] = {0}, x[3] = {1, 2, 3};
  __enzyme_autodiff((void *)model_loss, enzyme_dup, w, dw, enzyme_const, x, enzyme_const, 3);
  double h = 1e-6;
  for (int i = 0; i < 3; i++) {
    double kept = w[i];
    w[i] = kept + h;
    double up = model_loss(w, x, 3);
    w[i] = kept - h;
    double down = model_loss(w, x, 3);
    w[i] = kept;
    CHECK_CLOSE(dw[i], (up - down) / (2 * h), 1e-8);
  }
  return 0;
}
