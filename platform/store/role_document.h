// What most specs do not say: of images, of roles, of volumes, of labels. A document holds of it
// only what is said, so that it costs the others no byte.
//
// Pure. Reading throws, see document.h.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "job/spec.h"
#include "store/document.h"

namespace muster::store {

/// Keys with what writes their values: a map that is announced by how many there are.
class SparseMap {
 public:
  using Write = std::function<void(CborWriter&)>;

  void add(std::string_view key, Write write) { entries_.emplace_back(key, std::move(write)); }
  size_t count() const { return entries_.size(); }
  /// The pairs alone, without their number.
  void write(CborWriter& out) const {
    for (const auto& [key, write] : entries_) write(out.key(key));
  }

 private:
  std::vector<std::pair<std::string_view, Write>> entries_;
};

/// What `spec` says beyond the fields that every document has. `spec` must outlive it.
SparseMap extras_of(const job::JobSpec& spec);
/// Those of `value`; what is not there stays.
void read_extras(const CborValue& value, job::JobSpec& spec);

/// Names are text, values any bytes.
void write_pairs(CborWriter& out, const std::map<std::string, std::string>& pairs);
std::map<std::string, std::string> pairs_of(const CborValue& value);

}  // namespace muster::store
