// Where a value stands in a document: "tasks[0].exit.code". A chain of parts on the stack, which
// becomes text only where a fault is noted.
//
// A Path refers to its parent and to its name: both must outlive it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::record {

class Path {
 public:
  /// The document itself.
  Path() = default;
  explicit Path(std::string_view name) : name_(name) {}
  Path(const Path& parent, std::string_view name) : parent_(&parent), name_(name) {}
  Path(const Path& parent, size_t index) : parent_(&parent), index_(index), is_element_(true) {}

  bool empty() const { return parent_ == nullptr && name_.empty(); }
  std::string text() const;

 private:
  void append_to(std::string& out) const;

  const Path* parent_ = nullptr;
  std::string_view name_;
  size_t index_ = 0;
  bool is_element_ = false;
};

}  // namespace muster::record
