#include "record/value.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::record {
namespace {

std::string cbor_of(const Json& document) {
  std::string bytes;
  Json::to_cbor(document, bytes);
  return bytes;
}

/// The value as nlohmann's tree, with which the tests compare.
Json as_json(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kNull:
      return nullptr;
    case Value::Kind::kFlag:
      return value.flag();
    case Value::Kind::kInteger:
      return value.integer();
    case Value::Kind::kHugeInteger:
    case Value::Kind::kReal:
      return value.real();
    case Value::Kind::kText:
      return value.text();
    case Value::Kind::kList: {
      Json list = Json::array();
      for (const Value& each : value) list.push_back(as_json(each));
      EXPECT_EQ(list.size(), value.size());
      return list;
    }
    case Value::Kind::kObject: {
      Json object = Json::object();
      for (const Value& each : value) {
        object[std::string(each.name())] = as_json(each);
        EXPECT_EQ(as_json(*value.find(each.name())), as_json(each));
      }
      EXPECT_EQ(object.size(), value.size());
      return object;
    }
  }
  return nullptr;
}

TEST(ValueTree, HasTheContentOfTheText) {
  for (const char* const text :
       {"null", "true", "false", "0", "-1", "9223372036854775807", "-9223372036854775808",
        "18446744073709551615", "0.5", "1e300", R"("")", R"("a long text, which lies on the heap")",
        R"("\u00e9\n\u0000x")", "[]", "{}", "[[], {}, [[]]]", R"({"": 1, "a": {"b": [1, 2, {}]}})",
        R"([1, "two", 3.0, null, {"four": [5, {"six": "seven"}], "eight": false}])"}) {
    const auto tree = ValueTree::of_text(text);
    ASSERT_TRUE(tree) << text;
    const Json judge = Json::parse(text);
    EXPECT_EQ(as_json(tree->root()), judge) << text;
    EXPECT_EQ(as_json(ValueTree::of_cbor(cbor_of(judge))->root()), judge) << text;
    EXPECT_EQ(as_json(ValueTree::of(judge).root()), judge) << text;
  }
}

TEST(ValueTree, ReportsWhereATextIsNotJson) {
  NotJson fault;
  EXPECT_FALSE(ValueTree::of_text(R"({"a": })", &fault));
  EXPECT_EQ(fault.byte, 7U);
  EXPECT_FALSE(fault.number_out_of_range);
  EXPECT_FALSE(ValueTree::of_text("[1e999]", &fault));
  EXPECT_TRUE(fault.number_out_of_range);
  for (const char* const text : {"", " ", "{", "[1,]", "1 2", "\"\xff\"", "{\"a\" 1}"}) {
    EXPECT_FALSE(ValueTree::of_text(text)) << text;
  }
}

TEST(ValueTree, RefusesInvalidCbor) {
  const std::string whole = cbor_of(Json::parse(R"({"a": [1, "text", {"b": 2.5}]})"));
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(ValueTree::of_cbor(whole.substr(0, length))) << length;
  }
  EXPECT_FALSE(ValueTree::of_cbor(whole + '\0'));
  EXPECT_FALSE(ValueTree::of_cbor("\x41x"));  // a byte string
}

TEST(ValueTree, OfRepeatedNamesTheLastCounts) {
  const auto tree = ValueTree::of_text(R"({"a": 1, "b": 2, "a": 3})");
  EXPECT_EQ(tree->root().find("a")->integer(), 3);
  EXPECT_EQ(tree->root().find("c"), nullptr);
}

TEST(ValueTree, KeepsItsTextsWhenItIsMoved) {
  auto tree = ValueTree::of_text(R"(["x"])");
  const ValueTree moved = *std::move(tree);
  EXPECT_EQ(moved.root().begin()->text(), "x");
}

TEST(ValueTree, AcceptsDeepNesting) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_TRUE(ValueTree::of_text(deep));
}

}  // namespace
}  // namespace muster::record
