#include "engine/plain_cbor.h"

#include <array>
#include <cstdint>

namespace muster::engine {

namespace {

enum Major { kUnsigned, kNegative, kBytes, kText, kArray, kMap, kTag, kOther };
constexpr uint8_t kLongestArgument = 27;
constexpr uint8_t kInline = 24;
/// Allowed values of kOther: false, true and null; numbers of two, four and eight bytes.
constexpr uint8_t kFalse = 20, kNull = 22, kHalf = 25, kDouble = 27;

struct Head {
  Major major = kOther;
  uint8_t info = 0;
  uint64_t argument = 0;
};

class Walk {
 public:
  explicit Walk(std::string_view text) : rest_(text) {}

  bool is_plain() {
    if (!take_value()) return false;
    while (depth_ > 0) {
      if (missing_[depth_ - 1] == 0) {
        --depth_;
        continue;
      }
      --missing_[depth_ - 1];
      if (!take_value()) return false;
    }
    return rest_.empty();
  }

 private:
  bool take_head(Head& head) {
    if (rest_.empty()) return false;
    const auto first = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    head = {.major = static_cast<Major>(first >> 5),
            .info = static_cast<uint8_t>(first & 0x1f),
            .argument = first & 0x1fu};
    if (head.info < kInline) return true;
    if (head.info > kLongestArgument) return false;
    const size_t bytes = size_t{1} << (head.info - kInline);
    if (rest_.size() < bytes) return false;
    head.argument = 0;
    for (size_t i = 0; i < bytes; ++i) {
      head.argument = head.argument << 8 | static_cast<uint8_t>(rest_[i]);
    }
    rest_.remove_prefix(bytes);
    return true;
  }

  bool take_value() {
    Head head;
    if (!take_head(head) || ++values_ > kMostCborValues) return false;
    switch (head.major) {
      case kUnsigned:
      case kNegative:
        return true;
      case kBytes:
      case kText:
        if (head.argument > rest_.size()) return false;
        rest_.remove_prefix(head.argument);
        return true;
      case kArray:
        return descend(head.argument, 1);
      case kMap:
        return descend(head.argument, 2);
      case kTag:
        return false;
      case kOther:
        return (head.info >= kFalse && head.info <= kNull) ||
               (head.info >= kHalf && head.info <= kDouble);
    }
    return false;
  }

  /// Each part takes at least one byte.
  bool descend(uint64_t entries, uint64_t parts) {
    if (entries > rest_.size() / parts || depth_ == missing_.size()) return false;
    missing_[depth_++] = entries * parts;
    return true;
  }

  std::string_view rest_;
  std::array<uint64_t, kDeepestCbor> missing_{};  ///< parts that each open item still needs
  size_t depth_ = 0;
  size_t values_ = 0;
};

}  // namespace

bool is_plain_cbor(std::string_view text) {
  return Walk(text).is_plain();
}

}  // namespace muster::engine
