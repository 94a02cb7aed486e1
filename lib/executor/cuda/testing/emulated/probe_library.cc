// Libraries without a purpose, for tests of the library search: one to find, and with
// CKPLAN_PROBE_NEEDS_ANOTHER one that needs it.
extern "C" int CkplanProbe();
#ifdef CKPLAN_PROBE_NEEDS_ANOTHER
extern "C" int CkplanNeedingProbe();
extern "C" int CkplanNeedingProbe() { return CkplanProbe(); }
#else
extern "C" int CkplanProbe() { return 7; }
#endif
