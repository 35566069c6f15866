#include "flat_memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace muster::training {
namespace {

constexpr std::uint64_t kAlignment = 64;

}  // namespace

FlatMemory::FlatMemory(collective::Session& session, std::uint64_t bytes)
    : session_(session), data_(session.allocate_shared(bytes)), shared_(data_ != nullptr) {
  if (!shared_) {
    const std::uint64_t whole = std::max(bytes, kAlignment) + kAlignment - 1;
    data_ = std::aligned_alloc(kAlignment, whole / kAlignment * kAlignment);
    if (data_ == nullptr) throw std::bad_alloc();
  }
  std::memset(data_, 0, bytes);
}

FlatMemory::~FlatMemory() {
  if (abandoned_) return;
  if (shared_) {
    session_.free_shared(data_);
  } else {
    std::free(data_);
  }
}

}  // namespace muster::training
