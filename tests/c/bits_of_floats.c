// flags: -lm
#include "check.h"
#include <stdint.h>
#include <string.h>
double __enzyme_autodiff(void*,...); double __enzyme_fwddiff(void*,...);
double fsqrt(double x){ uint64_t i; memcpy(&i,&x,8); i=(1ULL<<61)+(i>>1)-(1ULL<<51)*0+ (0x1FF7A3BEA91D9B1BULL-(1ULL<<61)); double y; memcpy(&y,&i,8); y=0.5*(y+x/y); y=0.5*(y+x/y); y=0.5*(y+x/y); return y; }
double fcbrt(double x){ union{double d; uint64_t u;} v={x}; v.u=v.u/3+0x2A9F7893782DA1CEULL; double y=v.d; for(int i=0;i<4;i++) y=(2*y+x/(y*y))/3; return y; }
double frcp(double x){ union{double d; uint64_t u;} v={x}; v.u=0x7FDE5F73AABB2400ULL-v.u; double y=v.d; for(int i=0;i<4;i++) y=y*(2-x*y); return y; }
double raw(double x){ union{double d; uint64_t u;} v={x}; v.u=0x7FDE5F73AABB2400ULL-v.u; return v.d; }
int main(){ for(double x=.3;x<20;x*=1.7){ CHECK_CLOSE(__enzyme_autodiff((void*)fsqrt,x),.5/sqrt(x),1e-9); CHECK_CLOSE(__enzyme_autodiff((void*)fcbrt,x),1/(3*cbrt(x)*cbrt(x)),1e-9); CHECK_CLOSE(__enzyme_autodiff((void*)frcp,x),-1/(x*x),1e-9); CHECK_CLOSE(__enzyme_fwddiff((void*)frcp,x,1.0),-1/(x*x),1e-9); double e=1e-7*x; CHECK_CLOSE(__enzyme_autodiff((void*)raw,x),(raw(x+e)-raw(x-e))/(2*e),1e-6);} CHECK_CLOSE(__enzyme_autodiff((void*)raw,-1.3),(raw(-1.3+1e-7)-raw(-1.3-1e-7))/2e-7,1e-6); return 0;}
