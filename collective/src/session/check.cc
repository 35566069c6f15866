#include "session/check.h"

#include <string>

#include "call/arguments.h"
#include "session/protocol.h"

namespace muster::collective::session {
namespace {

// What the argument's own check says, with the name of the operation before it.
Status about(std::string_view name, const Status& checked) {
  if (checked) return {};
  return bad(name, checked.error().message);
}

}  // namespace

Error bad(std::string_view name, std::string_view what) {
  return {ErrorCode::kBadArgument, "'" + std::string(name) + "': " + std::string(what)};
}

Status check_name(std::string_view name) {
  if (name.empty()) return bad(name, "an operation needs a name");
  if (name.size() > kLongestName) {
    return bad(name.substr(0, 40), "a name has at most " + std::to_string(kLongestName) +
                                       " bytes, this one " + std::to_string(name.size()));
  }
  return {};
}

Status check_reduction(std::string_view name, DataType type, const Reduction& reduction) {
  return about(name, collective::check_reduction(type, reduction, 0));
}

Status check_bytes(std::string_view name, const void* data, std::uint64_t bytes) {
  return about(name, check_buffer({data, bytes}));
}

Status check_tensor(std::string_view name, const Tensor& tensor, DataType type) {
  const Status counted = collective::check_reduction(type, {}, tensor.count);
  if (!counted) return about(name, counted);
  const std::uint64_t bytes = tensor.count * size_of(type);
  return about(name, check_buffers({tensor.in, bytes}, {tensor.out, bytes}));
}

Status check_lengths(std::string_view name, std::span<const std::uint64_t> lengths, int size) {
  return about(name, collective::check_lengths(lengths, 1, size));
}

}  // namespace muster::collective::session
