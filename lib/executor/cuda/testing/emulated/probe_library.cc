// A library without a purpose, for tests of the library search.
extern "C" int CkplanProbe();
extern "C" int CkplanProbe() { return 7; }
