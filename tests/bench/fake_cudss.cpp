// A library with the functions of cuDSS that the benchmarks call, which do nothing: so that loading
// can be tested where cuDSS and GPUs are not. Its version is 1.2.3, or FAKE_CUDSS_MAJOR's.

#include <cstdlib>

extern "C" {

int cudssGetProperty(int property, int* value) {
  const char* major = std::getenv("FAKE_CUDSS_MAJOR");
  *value = property == 0 && major != nullptr ? std::atoi(major) : property + 1;
  return 0;
}

int cudssCreate(void**) { return 0; }
int cudssDestroy(void*) { return 7; }
int cudssSetThreadingLayer(void*, const char*) { return 0; }
int cudssConfigCreate(void**) { return 0; }
int cudssConfigDestroy(void*) { return 0; }
int cudssDataCreate(void*, void**) { return 0; }
int cudssDataDestroy(void*, void*) { return 0; }
int cudssDataGet(void*, void*, int, void*, unsigned long, unsigned long*) { return 0; }
int cudssMatrixCreateCsr() { return 0; }
int cudssMatrixCreateDn() { return 0; }
int cudssMatrixSetValues() { return 0; }
int cudssMatrixDestroy(void*) { return 0; }
int cudssExecute() { return 0; }
}
