// A library without purpose, for the tests of the search for libraries.
extern "C" int CkplanProbe();
extern "C" int CkplanProbe() { return 7; }
