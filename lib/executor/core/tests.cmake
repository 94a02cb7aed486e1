# Tests of running steps, which are linked with one backend or another: see testing/test_backend.h.
set(ckplan_exec_tests
  constant_store_test.cc
  element_orders_test.cc
  fault_test.cc
  fused_attention_test.cc
  fusion_test.cc
  gradient_test.cc
  buffer_memory_test.cc
  kernel_fault_test.cc
  loss_test.cc
  order_test.cc
  program_test.cc
  recorded_test.cc
  profile_test.cc
  testing/steps.cc
  train_test.cc)
