// Room on the disk that is kept for deletions. The way out of a full disk is to delete ended jobs, and
// the record that a job is deleted needs room itself. So does the record that a token is revoked.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <utility>

namespace muster::store {

class SpareRoom {
 public:
  static constexpr int64_t kBytes = 1 << 20;

  /// `file` holds the room. It may be left from an earlier process.
  explicit SpareRoom(std::filesystem::path file) : file_(std::move(file)) {}

  /// Reserves the room, unless it is reserved already or the disk is nearly full.
  void reserve() const;
  /// Gives the room back to the disk. False: none was reserved.
  bool release() const;

 private:
  std::filesystem::path file_;
};

}  // namespace muster::store
