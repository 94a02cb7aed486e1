// Casts untyped buffers of a call to floats; null stays null.
#pragma once

namespace ckplan::cpu {

inline const float* Floats(const void* at) { return static_cast<const float*>(at); }
inline float* Floats(void* at) { return static_cast<float*>(at); }

}  // namespace ckplan::cpu
