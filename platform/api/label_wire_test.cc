#include "api/label_wire.h"

#include <gtest/gtest.h>

#include "base/test_faults.h"

namespace muster::api {
namespace {

using base::Texts;

TEST(LabelWire, IsReadBackAsItWasWritten) {
  const LabelChanges changes{
      {"a", "b"}, {"gone", std::nullopt}, {"tag", ""}, {"Zoë 漢字", "\"quoted\""}};

  const std::string text = label_changes_to_json(changes);

  EXPECT_EQ(text, R"({"labels":{"Zoë 漢字":"\"quoted\"","a":"b","gone":null,"tag":""}})");
  const auto read = label_changes_from_json(text);
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, changes);
}

TEST(LabelWire, OfNothingIsNothing) {
  EXPECT_TRUE(label_changes_from_json(label_changes_to_json({}))->empty());
}

TEST(LabelWire, SaysEverythingThatIsWrong) {
  EXPECT_EQ(faults_of(label_changes_from_json("{}")), Texts{"labels is missing"});
  EXPECT_EQ(faults_of(label_changes_from_json(R"({"labels":["a"]})")),
            Texts{"labels must be an object, not a list"});
  EXPECT_EQ(
      faults_of(label_changes_from_json(R"({"labels":{"a":1,"b=c":"","d":"\n"},"label":[]})")),
      (Texts{"labels.a must be text, not a whole number",
             "label is not a field; did you mean 'labels'?",
             "labels.b=c is not a label name: use 1 to 128 bytes of text without '='",
             "labels.d is not text of at most 256 bytes without control characters"}));
}

}  // namespace
}  // namespace muster::api
