#include "base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::base {
namespace {

TEST(JsonText, IsOneLineUnlessItIsIndented) {
  const nlohmann::json value{{"ranks", {0, 1}}};

  EXPECT_EQ(json_text(value), R"({"ranks":[0,1]})");
  EXPECT_EQ(indented_json_text(value), "{\n  \"ranks\": [\n    0,\n    1\n  ]\n}");
}

TEST(JsonText, KeepsTheOrderOfOrderedObjects) {
  const nlohmann::ordered_json value{{"second", 2}, {"first", 1}};

  EXPECT_EQ(json_text(value), R"({"second":2,"first":1})");
  EXPECT_EQ(parse_ordered_json(json_text(value)), value);
}

TEST(JsonText, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(json_text(nlohmann::json("caf\xe9")), "\"caf\xef\xbf\xbd\"");
}

TEST(ParseJson, DiscardsWhatIsNotJson) {
  for (const char* text : {"", "{", "{\"a\":1} x", "nan", "{\"a\":1,}"}) {
    EXPECT_TRUE(parse_json(text).is_discarded()) << text;
    EXPECT_TRUE(parse_ordered_json(text).is_discarded()) << text;
    EXPECT_THROW(parse_json_or_throw(text), nlohmann::json::parse_error) << text;
  }
}

TEST(Cbor, KeepsByteStrings) {
  const nlohmann::json value{{"bytes", nlohmann::json::binary({0, 0xff, 'x'})}};

  EXPECT_EQ(parse_cbor_or_throw(cbor_text(value)), value);
  EXPECT_THROW(parse_cbor_or_throw("\xff"), nlohmann::json::parse_error);
}

}  // namespace
}  // namespace muster::base
