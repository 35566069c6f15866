// Numbers on the wire: decimals with up to three places, and invalid numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "api/fields.h"

namespace muster::api {
namespace {

/// "x" of {"x": text} in thousandths, or the fault.
std::string milli_of(const std::string& text) {
  int64_t value = -1;
  const auto read = read_document(R"({"x":)" + text + "}", "test",
                                  [&](Fields& fields) { fields.read_milli("x", value); });
  return read ? std::to_string(value) : read.error().faults.at(0).what;
}

std::string written_json(const std::function<void(JsonWriter&)>& write) {
  std::string text;
  JsonWriter json(text);
  write(json);
  return text;
}

TEST(Milli, IsReadFromDecimals) {
  const std::pair<const char*, const char*> numbers[] = {
      {"0", "0"},
      {"2", "2000"},
      {"0.5", "500"},
      {"0.001", "1"},
      {"1.999", "1999"},
      {"5e-1", "500"},
      {"1e3", "1000000"},
      {"-0.25", "-250"},
      {"100000.7", "100000700"},
      {"1000000000000", "1000000000000000"},
      {"999999999999.999", "999999999999999"},
  };
  for (const auto& [text, value] : numbers) EXPECT_EQ(milli_of(text), value) << text;
}

TEST(Milli, MoreDecimalsAndOtherValuesAreFaults) {
  EXPECT_EQ(milli_of("0.0005"), "has more than three decimals");
  EXPECT_EQ(milli_of("1.0001"), "has more than three decimals");
  EXPECT_EQ(milli_of("1e-300"), "has more than three decimals");
  EXPECT_EQ(milli_of("1e13"), "is out of range; give -1000000000000 to 1000000000000");
  EXPECT_EQ(milli_of("18446744073709551615"),
            "is out of range; give -1000000000000 to 1000000000000");
  EXPECT_EQ(milli_of("\"1\""), "must be a number, not text");
  EXPECT_EQ(milli_of("true"), "must be a number, not true or false");
}

TEST(Milli, EveryThousandthReadsBackUnchanged) {
  for (int64_t milli = -2'000; milli < 2'000; ++milli) {
    EXPECT_EQ(milli_of(written_json([&](JsonWriter& json) { json.milli(milli); })),
              std::to_string(milli));
  }
  for (int64_t milli = 1; milli < 1'000'000'000'000'000; milli = milli * 7 + 3) {
    EXPECT_EQ(milli_of(written_json([&](JsonWriter& json) { json.milli(milli); })),
              std::to_string(milli));
  }
}

TEST(Milli, RespectsTheRangeOfAnInt) {
  int share = 0;
  const auto read = read_document(R"({"x":2147483.648})", "test",
                                  [&](Fields& fields) { fields.read_milli("x", share); });

  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().faults[0].what, "is out of range; give -2147483.648 to 2147483.647");
}

TEST(Real, ReadsBackUnchanged) {
  for (const double value : {0.0, 1.0, 0.1, -2.5, 1e300, 5e-324}) {
    double read = -1;
    const std::string text =
        R"({"x":)" + written_json([&](JsonWriter& json) { json.real(value); }) + "}";
    ASSERT_TRUE(read_document(text, "test", [&](Fields& fields) { fields.read("x", read); }));
    EXPECT_EQ(read, value);
  }
  EXPECT_EQ(written_json([](JsonWriter& json) { json.real(INFINITY); }), "null");
}

TEST(Numbers, AreWholeIfTheirFractionIsZero) {
  const auto whole = [](const std::string& text) {
    int64_t value = -1;
    const auto read = read_document(R"({"x":)" + text + "}", "test",
                                    [&](Fields& fields) { fields.read("x", value); });
    return read ? std::to_string(value) : read.error().faults.at(0).what;
  };
  EXPECT_EQ(whole("451.0"), "451");
  EXPECT_EQ(whole("-1e3"), "-1000");
  EXPECT_EQ(whole("451.5"), "must be a whole number, not a number with a fraction");
  EXPECT_EQ(whole("1e17"),
            "is too large for a number with a fraction or an exponent; write all of its digits");
  EXPECT_EQ(whole("1e19"), "is out of range; give -9223372036854775808 to 9223372036854775807");
}

TEST(Numbers, OfAListAreEachCheckedAtTheirPlace) {
  std::vector<int> numbers;
  const auto read = read_document(R"({"x":[1,"2",3.5,-4,3000000000]})", "test",
                                  [&](Fields& fields) { fields.read("x", numbers); });

  ASSERT_FALSE(read);
  std::vector<std::string> fields;
  for (const base::Fault& fault : read.error().faults) fields.push_back(fault.field);
  EXPECT_EQ(fields, (std::vector<std::string>{"x[1]", "x[2]", "x[4]"}));
}

}  // namespace
}  // namespace muster::api
