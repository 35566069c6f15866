#include "record/json_writer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace muster::record {
namespace {

using nlohmann::json;
using Encoding = JsonWriter::Encoding;

std::string numbers(Encoding encoding) {
  std::string out;
  JsonWriter writer(out, encoding);
  writer.open('[');
  for (const int64_t number : {int64_t{0}, int64_t{1}, int64_t{23}, int64_t{24}, int64_t{255},
                               int64_t{256}, int64_t{65535}, int64_t{65536}, int64_t{4294967295},
                               int64_t{4294967296}, std::numeric_limits<int64_t>::max()}) {
    writer.number(number).number(-number).number(-number - 1);
  }
  for (const int64_t thousandths : {0, 1, 500, 1000, -1500, 123'456'789}) writer.milli(thousandths);
  for (const double value : {0.0, -0.5, 1e300, 0.1, std::nan("")}) writer.real(value);
  writer.close(']');
  return out;
}

std::string texts(Encoding encoding) {
  std::string out;
  JsonWriter writer(out, encoding);
  writer.open('{');
  for (const size_t length : {0, 1, 23, 24, 255, 256, 65535, 65536}) {
    writer.key("k" + std::to_string(length)).text(std::string(length, 'x'));
  }
  writer.key("quotes \"\\\n").text("\x01\"\\\n\t");
  writer.key("bytes").text("\xFF\xFE");
  writer.key("prose \xFF").prose("\xFF and words");
  writer.key("base64").base64("any bytes\xFF");
  writer.key("time").time(base::Time(std::chrono::nanoseconds(1'700'000'000'123'456'789)));
  writer.key("list").texts({"a", "", "\xFF"}).key("ints").numbers({1, -1, 0});
  writer.key("empty").open('{').close('}').key("none").open('[').close(']');
  writer.key("flags").open('[').flag(true).flag(false).null().close(']');
  writer.close('}');
  return out;
}

TEST(JsonWriter, WritesTheSameDocumentAsTextAndAsCbor) {
  for (auto* write : {numbers, texts}) {
    const json text = json::parse(write(Encoding::kText));
    EXPECT_EQ(json::from_cbor(write(Encoding::kCbor)), text);
  }
}

TEST(JsonWriter, EscapesEveryByteAtEveryPlace) {
  for (size_t at = 0; at < 20; ++at) {
    for (int byte = 0; byte < 0x80; ++byte) {
      std::string text(20, 'a');
      text[at] = static_cast<char>(byte);
      std::string out;
      JsonWriter(out).text(text);
      EXPECT_EQ(json::parse(out), text) << out;
    }
    std::string bytes(20, 'a');
    bytes[at] = '\xFF';
    std::string out;
    JsonWriter(out).text(bytes);
    EXPECT_TRUE(json::parse(out).contains("base64")) << out;
  }
}

TEST(JsonWriter, WritesACborDocumentByteForByte) {
  std::string out;
  JsonWriter writer(out, Encoding::kCbor);
  writer.open('{').key("a").open('[').number(-1).flag(true).close(']').key("b").real(0.5).close(
      '}');
  EXPECT_EQ(out, std::string("\xBF"
                             "\x61"
                             "a\x9F\x20\xF5\xFF\x61"
                             "b\xFB\x3F\xE0\x00\x00\x00\x00\x00\x00\xFF",
                             19));
}

}  // namespace
}  // namespace muster::record
