#include "job/validate_labels.h"

#include <gtest/gtest.h>

#include "job/validate.h"

namespace muster::job {
namespace {

JobSpec labelless_spec() {
  return {.name = "a", .command = {"b"}, .folder = "/c"};
}

std::vector<Fault> label_faults(std::map<std::string, std::string> labels,
                                std::map<std::string, std::string> annotations = {}) {
  JobSpec spec = labelless_spec();
  spec.labels = std::move(labels);
  spec.annotations = std::move(annotations);
  return validate(spec);
}

TEST(ValidateLabels, AcceptsTagsAndNamesOfEveryKind) {
  EXPECT_EQ(label_faults({{"nightly", ""},
                          {"team.example/owner", "ada"},
                          {"my first tag", ""},
                          {"Zoë 漢字 🚀", "très bien"},
                          {std::string(128, 'k'), std::string(256, 'v')}}),
            std::vector<Fault>{});
}

TEST(ValidateLabels, SaysWhatIsNoLabel) {
  const std::string no_name =
      " is no name; use 1 to 128 bytes of text without control characters, and no blank at its "
      "ends";
  const std::string no_value =
      "its value is not text of at most 256 bytes without control characters";
  const struct {
    std::string key, value, field, what;
  } cases[] = {
      {"", "", "labels", "''" + no_name},
      {" a", "", "labels", "' a'" + no_name},
      {"a ", "", "labels", "'a '" + no_name},
      {"a\nb", "", "labels", "'a\nb'" + no_name},
      {"a\xC2\x85"
       "b",
       "", "labels",
       "'a\xC2\x85"
       "b'" +
           no_name},
      {std::string(129, 'k'), "", "labels", "'" + std::string(60, 'k') + "...'" + no_name},
      {"\xFF", "", "labels", "'\xEF\xBF\xBD'" + no_name},
      {"a=b", "", "labels", "'a=b' has a '=', which stands between name and value"},
      {"a", "\x1B[31m", "labels.a", no_value},
      {"a", "\xC3", "labels.a", no_value},
      {"a", std::string(257, 'v'), "labels.a", no_value},
  };
  for (const auto& [key, value, field, what] : cases) {
    EXPECT_EQ(label_faults({{key, value}}), (std::vector<Fault>{{.field = field, .what = what}}));
  }
}

TEST(ValidateLabels, TakesSixtyFour) {
  std::map<std::string, std::string> labels;
  for (int i = 0; i < 64; ++i) labels["tag-" + std::to_string(i)] = "";
  EXPECT_EQ(label_faults(labels), std::vector<Fault>{});

  labels["one-more"] = "";

  EXPECT_EQ(label_faults(labels),
            (std::vector<Fault>{{.field = "labels", .what = "are 65; give at most 64"}}));
}

TEST(ValidateLabels, KeepsAnyBytesInAnnotationsUpToABound) {
  EXPECT_EQ(label_faults({}, {{"gradient/workspace=x", "a\nb\xFF"},
                              {"b", std::string((64 << 10) - 30, 'x')}}),
            std::vector<Fault>{});
  EXPECT_EQ(label_faults({}, {{"a", std::string(64 << 10, 'x')}}),
            (std::vector<Fault>{{.field = "annotations",
                                 .what = "are 65537 bytes together; at most 65536 are kept"}}));
  EXPECT_EQ(label_faults({}, {{"a\tb", "x"}})[0].field, "annotations");
}

TEST(Labels, OfARequestAreJudgedAsThoseOfASpec) {
  EXPECT_TRUE(is_label_name("nightly"));
  EXPECT_FALSE(is_label_name("a=b"));
  EXPECT_FALSE(is_label_name(""));
  EXPECT_TRUE(is_label_value(""));
  EXPECT_FALSE(is_label_value("a\tb"));
}

}  // namespace
}  // namespace muster::job
