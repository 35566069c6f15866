#include "api/forecast_wire.h"

#include <gtest/gtest.h>

#include "api/test_cluster_values.h"

namespace muster::api {
namespace {

TEST(ForecastWire, IsReadBackAsItWasWrittenInEveryField) {
  const auto read = forecast_from_json(forecast_to_json(full_forecast()));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, full_forecast());
}

TEST(ForecastWire, SaysWhatIsMissing) {
  const auto read = forecast_from_json(R"({"placing":[{}]})");

  ASSERT_FALSE(read);
  std::vector<std::string> fields;
  for (const base::Fault& fault : read.error().faults) fields.push_back(fault.field);
  EXPECT_EQ(fields, (std::vector<std::string>{"starts_now", "placing[0].task", "placing[0].node",
                                              "before", "after"}));
}

TEST(ExplanationWire, IsReadBackAsItWasWrittenInEveryField) {
  const auto read = explanation_from_json(explanation_to_json(full_explanation()));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, full_explanation());
}

TEST(ExplanationWire, HasTheShapeThatIsDocumented) {
  const job::Explanation explanation{
      .name = "dist",
      .constraint = "room",
      .reason = {job::Remark{"needs 2 GPUs; 1 is free"}, {job::Remark{"'prep' holds 1 GPU of n1"}}},
      .position = 1};

  EXPECT_EQ(explanation_to_json(explanation),
            R"({"name":"dist","phase":"Queued","constraint":"room",)"
            R"("reason":"needs 2 GPUs; 1 is free","details":["'prep' holds 1 GPU of n1"],)"
            R"("reason_facts":{"kind":"remark","text":"needs 2 GPUs; 1 is free",)"
            R"("details":[{"kind":"remark","text":"'prep' holds 1 GPU of n1"}]},)"
            R"("position":1,"events":[]})");
}

}  // namespace
}  // namespace muster::api
