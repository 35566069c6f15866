#include "store/cbor_value.h"

#include <cstring>
#include <limits>
#include <stdexcept>

namespace muster::store {

/// Takes values off the front of a text.
class CborParser {
 public:
  explicit CborParser(std::string_view text) : rest_(text) {}

  CborValue value() {
    constexpr int kDeepest = 32;
    if (++depth_ > kDeepest) fail("is nested too deep");
    const auto initial = static_cast<unsigned char>(bytes(1)[0]);
    CborValue value = of_major(initial >> 5U, initial & 31U);
    --depth_;
    return value;
  }

  void expect_end() const {
    if (!rest_.empty()) fail("goes on behind its end");
  }

 private:
  using Type = CborValue::Type;

  [[noreturn]] static void fail(const char* what) { throw std::runtime_error(what); }

  CborValue of_major(unsigned major, unsigned info) {
    CborValue value;
    switch (major) {
      case 0:
      case 1:
        value.type_ = Type::kNumber;
        value.number_ = major == 0 ? signed_argument(info) : ~signed_argument(info);
        return value;
      case 2:
      case 3:
        value.type_ = major == 2 ? Type::kBytes : Type::kText;
        value.string_ = bytes(argument(info));
        return value;
      case 4:
        value.type_ = Type::kList;
        for (uint64_t left = argument(info); left > 0; --left) value.list_.push_back(this->value());
        return value;
      case 5:
        value.type_ = Type::kMap;
        for (uint64_t left = argument(info); left > 0; --left) read_pair(value);
        return value;
      case 7:
        return simple(info);
      default:
        fail("holds a tag");
    }
  }

  void read_pair(CborValue& map) {
    const CborValue key = value();
    if (key.type_ != Type::kText) fail("has a key that is no text");
    map.map_.emplace_back(key.string_, value());
  }

  CborValue simple(unsigned info) {
    CborValue value;
    switch (info) {
      case 20:
      case 21:
        value.type_ = Type::kFlag;
        value.number_ = info == 21 ? 1 : 0;
        return value;
      case 22:
        return value;
      case 27: {
        const uint64_t bits = big_endian(sizeof bits);
        value.type_ = Type::kReal;
        std::memcpy(&value.real_, &bits, sizeof bits);
        return value;
      }
      default:
        fail("holds a value of an unknown type");
    }
  }

  int64_t signed_argument(unsigned info) {
    const uint64_t number = argument(info);
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      fail("holds a number that is out of range");
    }
    return static_cast<int64_t>(number);
  }

  uint64_t argument(unsigned info) {
    if (info < 24) return info;
    if (info > 27) fail("holds a value of unknown length");
    return big_endian(size_t{1} << (info - 24));
  }

  uint64_t big_endian(size_t count) {
    uint64_t number = 0;
    for (const char byte : bytes(count)) number = number << 8U | static_cast<unsigned char>(byte);
    return number;
  }

  std::string_view bytes(uint64_t count) {
    if (count > rest_.size()) fail("breaks off");
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  std::string_view rest_;
  int depth_ = 0;
};

CborValue CborValue::parse(std::string_view document) {
  CborParser parser(document);
  CborValue value = parser.value();
  parser.expect_end();
  return value;
}

const CborValue& CborValue::expect(Type type) const {
  if (type_ != type) throw std::runtime_error("has a value of the wrong type");
  return *this;
}

bool CborValue::flag() const {
  return expect(Type::kFlag).number_ != 0;
}

int64_t CborValue::number() const {
  return expect(Type::kNumber).number_;
}

int CborValue::small_number() const {
  const int64_t value = number();
  const auto narrow = static_cast<int>(value);
  if (narrow != value) throw std::runtime_error("has a number that is out of range");
  return narrow;
}

double CborValue::real() const {
  return expect(Type::kReal).real_;
}

std::string CborValue::text() const {
  return std::string(expect(Type::kText).string_);
}

std::string CborValue::bytes() const {
  return std::string(expect(Type::kBytes).string_);
}

const std::vector<CborValue>& CborValue::list() const {
  return expect(Type::kList).list_;
}

const CborValue* CborValue::find(std::string_view key) const {
  for (const auto& [name, value] : expect(Type::kMap).map_) {
    if (name == key) return &value;
  }
  return nullptr;
}

const CborValue& CborValue::at(std::string_view key) const {
  if (const CborValue* value = find(key)) return *value;
  throw std::runtime_error("has no '" + std::string(key) + "'");
}

}  // namespace muster::store
