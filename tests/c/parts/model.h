#ifndef MODEL_H
#define MODEL_H
double model_loss(const double *w, const double *x, int n);
#endif
