// A library that needs another one, for tests of the library search.
extern "C" int CkplanProbe();
extern "C" int CkplanNeedingProbe();
extern "C" int CkplanNeedingProbe() { return CkplanProbe(); }
