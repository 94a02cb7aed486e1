#include "lib/reference/op_case.h"

namespace ckplan::reference {

namespace {

constexpr CaseRow kRows[] = {
    {"Gemm", "f3x4 f4x5 -> f3x5"},
    {"Gemm", "f3x4 f4x5 f5 -> f3x5", "alpha=0.5 beta=-2.0"},
    {"Gemm", "f4x3 f4x5 f3x5 -> f3x5", "transA=1"},
    {"Gemm", "f3x4 f5x4 f1x5 -> f3x5", "transB=1 alpha=1.5"},
    {"Gemm", "f4x3 f5x4 f3x1 -> f3x5", "transA=1 transB=1 alpha=-1.0"},
    {"Gemm", "f3x4 f4x5 fs -> f3x5", "beta=0.25"},
    {"Gemm", "f3x4 f4x5 f1 -> f3x5"},
    {"Gemm", "f3x4 f4x1 f3x1 -> f3x1"},
    {"Gemm", "f1x4 f4x5 f1x5 -> f1x5"},
    {"Gemm", "f8x32 f40x32! f40! -> f8x40", "transB=1"},
    {"Gemm", "f1x1 f1x1 f1x1 -> f1x1"},
    {"MatMul", "f3x4 f4x5 -> f3x5"},
    {"MatMul", "f4 f4x5 -> f5"},
    {"MatMul", "f3x4 f4 -> f3"},
    {"MatMul", "f4 f4 -> fs"},
    {"MatMul", "f2x3x4 f4x5 -> f2x3x5"},
    {"MatMul", "f2x3x4 f4x5! -> f2x3x5"},
    {"MatMul", "f2x3x4 f2x4x5 -> f2x3x5"},
    {"MatMul", "f3x4 f2x4x5 -> f2x3x5"},
    {"MatMul", "f2x1x3x4 f5x4x2 -> f2x5x3x2"},
    {"MatMul", "f2x5x3x4 f2x1x4x2 -> f2x5x3x2"},
    {"MatMul", "f1x5x3x4 f2x5x4x2 -> f2x5x3x2"},
    {"MatMul", "f2x5x3x4 f1x1x4x2 -> f2x5x3x2"},
    {"MatMul", "f2x3x4 f4 -> f2x3"},
    {"MatMul", "f4 f2x4x5 -> f2x5"},
    {"MatMul", "f40x3 f3x1024! -> f40x1024", "", 1e-4},  // A stride that is bad for the cache.
    {"Gemm", "f40x3~ f3x2048! f2048! -> f40x2048", "alpha=0.5", 1e-4},
    {"Einsum", "f3x4 f4x5 -> f3x5", "equation='ij,jk->ik'"},
    {"Einsum", "f3x4 f4x5 -> f3x5", "equation='ij,jk'"},
    {"Einsum", "f2x3x4 f2x5x4 -> f2x3x5", "equation='bid,bjd->bij'"},
    {"Einsum", "f2x3x4x5 f2x6x4x5 -> f2x4x3x6", "equation='bqhd,bkhd->bhqk'"},
    {"Einsum", "f2x4x3x6 f2x6x4x5 -> f2x3x4x5", "equation='bhqk,bkhd->bqhd'"},
    {"Einsum", "f3x4 f3x4 -> fs", "equation='ij,ij->'"},
    {"Einsum", "f3 f4 -> f3x4", "equation='i,j->ij'"},
    {"Einsum", "f3x4 f3x4 -> f4x3", "equation='ij,ij->ji'"},
    {"Einsum", "f3x4 -> f4x3", "equation='ij->ji'"},
    {"Einsum", "f3x4 -> f3", "equation='ij->i'"},
    {"Einsum", "f3x3 -> f3", "equation='ii->i'"},
    {"Einsum", "f3x3 -> fs", "equation='ii'"},
    {"Einsum", "f3x4 f4x5 f5x2 -> f3x2", "equation='ij,jk,kl->il'"},
    {"Einsum", "f2x3x4 f4x5 -> f2x3x5", "equation='...i,ij->...j'"},
    {"Einsum", "f2x3x4 f1x4x5 -> f2x3x5", "equation='...ij,...jk->...ik'"},
    {"Einsum", "f3x4x7 f4x5 -> f3x5", "equation='ijx,jk->ik'"},
    {"Einsum", "f1x4 f3x4 -> f3", "equation='ij,ij->i'"},
    {"MatMul", "f2x2x20x24 f2x2x24x20 -> f2x2x20x20"},
    {"MatMul", "f2x3x4x5 f2x1x5x6 -> f2x3x4x6"},  // One matrix of three times the rows.
    {"MatMul", "f2x3x4x5 f3x5x6 -> f2x3x4x6"},
    {"MatMul", "f4x5 f2x3x5x6 -> f2x3x4x6"},
    {"Einsum", "f2x3x4x5 f4x5x6 -> f2x6x3", "equation='bshd,hde->bes'"},
    {"Einsum", "f3x4x5 f5x6x3 -> f6x4x3", "equation='bik,kjb->jib'"},
    {"Einsum", "f2x3x4x5 f3x5 -> f2x3x4", "equation='bhid,hd->bhi'"},
    {"Einsum", "f2x3x4x5x6 f5x3x6x2x7 -> f4x7x2x3", "equation='abcde,dbeaf->cfab'"},
};

}  // namespace

std::span<const CaseRow> MatMulCases() { return kRows; }

}  // namespace ckplan::reference
