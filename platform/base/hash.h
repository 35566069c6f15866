// FNV-1a (Fowler, Noll and Vo), a hash whose values never change: for seeds and names that another process
// computes again. It does not resist attackers.
//
// Pure.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster::base {

constexpr uint64_t fnv_1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325U;
  for (const char letter : text) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3U;
  }
  return hash;
}

static_assert(fnv_1a("foobar") == 0x85944171f73967e8U);

}  // namespace muster::base
