// A library that needs another one, for the tests of the search for libraries.
extern "C" int CkplanProbe();
extern "C" int CkplanNeedingProbe();
extern "C" int CkplanNeedingProbe() { return CkplanProbe(); }
