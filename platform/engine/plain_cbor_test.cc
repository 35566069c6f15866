#include "engine/plain_cbor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace muster::engine {
namespace {

using nlohmann::json;

std::string cbor(const json& value) {
  std::string text;
  json::to_cbor(value, text);
  return text;
}

TEST(PlainCbor, OutputOfTheLibraryIsPlain) {
  const json all = {{"text", "words"},
                    {"none", nullptr},
                    {"yes", true},
                    {"no", false},
                    {"small", 3},
                    {"large", int64_t{-5'000'000'000}},
                    {"huge", UINT64_MAX},
                    {"part", 0.25},
                    {"odd", 0.1},
                    {"bytes", json::binary({0, 255, 7})},
                    {"list", json::array({1, json::array({2, json::object()}), "x"})},
                    {"long", std::string(70'000, 'x')}};

  EXPECT_TRUE(is_plain_cbor(cbor(all)));
  for (const auto& [name, value] : all.items()) EXPECT_TRUE(is_plain_cbor(cbor(value))) << name;
}

TEST(PlainCbor, NoBeginningOfAValueIsOne) {
  const std::string whole = cbor({{"list", {1, 2, 300, "x", json::binary({1, 2})}}, {"b", 0.1}});
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(is_plain_cbor(std::string_view(whole).substr(0, length))) << length;
  }
  EXPECT_FALSE(is_plain_cbor(whole + '\0'));
}

TEST(PlainCbor, InputThatMakesAReaderFailIsNotPlain) {
  const std::pair<const char*, std::string> hostile[] = {
      {"arrays in arrays", std::string(1 << 20, '\x81')},
      {"maps in maps", std::string(1 << 20, '\xa1')},
      {"texts of indefinite length in each other", std::string(1 << 20, '\x7f')},
      {"bytes of indefinite length in each other", std::string(1 << 20, '\x5f')},
      {"tags of tags", std::string(1 << 20, '\xc1')},
      {"an array with a huge declared length", "\x9b\xff\xff\xff\xff\xff\xff\xff\xff"},
      {"a map whose parts overflow", std::string("\xbb\x80\0\0\0\0\0\0\0", 9)},
      {"bytes that are not there", "\x5a\xff\xff\xff\xff"},
      {"an array of indefinite length", "\x9f\xff"},
      {"a break", "\xff"},
      {"a value that stands for nothing", "\xf7"},
  };
  for (const auto& [what, text] : hostile) EXPECT_FALSE(is_plain_cbor(text)) << what;
}

TEST(PlainCbor, TheDeepestAndTheMostAreBounds) {
  EXPECT_TRUE(is_plain_cbor(std::string(kDeepestCbor, '\x81') + '\x01'));
  EXPECT_FALSE(is_plain_cbor(std::string(kDeepestCbor + 1, '\x81') + '\x01'));

  const auto numbers = [](size_t count) {
    std::string text = "\x9a";
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(count >> shift);
    return text + std::string(count, '\x01');
  };
  EXPECT_TRUE(is_plain_cbor(numbers(kMostCborValues - 1)));
  EXPECT_FALSE(is_plain_cbor(numbers(kMostCborValues)));
}

}  // namespace
}  // namespace muster::engine
