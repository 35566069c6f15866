#include "record/path.h"

#include "base/utf8.h"

namespace muster::record {

void Path::append_to(std::string& out) const {
  if (parent_ != nullptr) parent_->append_to(out);
  if (is_element_) {
    out += "[" + std::to_string(index_) + "]";
  } else if (!name_.empty()) {
    if (!out.empty()) out += '.';
    // A key that somebody sent may be a megabyte long.
    out += base::shortened(name_);
  }
}

std::string Path::text() const {
  std::string out;
  append_to(out);
  return out;
}

}  // namespace muster::record
