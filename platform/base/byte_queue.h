// Bytes that wait: added behind, taken in front.
//
// A value.
#pragma once

#include <string>
#include <string_view>

namespace muster::base {

class ByteQueue {
 public:
  void add(std::string_view bytes) { bytes_ += bytes; }
  std::string_view front() const { return std::string_view(bytes_).substr(taken_); }
  size_t size() const { return bytes_.size() - taken_; }
  bool empty() const { return size() == 0; }
  size_t kept() const { return bytes_.size(); }  ///< in memory, with what was taken
  void clear() {
    bytes_.clear();
    taken_ = 0;
  }

  /// REQUIRES: there are so many. Moves what is left only now and then: a megabyte that goes out
  /// in pieces of a pipe's size would otherwise be moved twenty times. At most as much as is left
  /// is kept of what was taken.
  void take(size_t count) {
    taken_ += count;
    if (taken_ < bytes_.size() / 2) return;
    bytes_.erase(0, taken_);
    taken_ = 0;
  }

 private:
  std::string bytes_;
  size_t taken_ = 0;
};

}  // namespace muster::base
