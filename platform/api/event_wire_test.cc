#include "api/event_wire.h"

#include <gtest/gtest.h>

#include "api/test_values.h"

namespace muster::api {
namespace {

TEST(EventWire, HasTheShapeThatIsDocumentedAndIsReadBack) {
  const JobEvent event{.time = time_at(1'767'225'600'123'456'789),
                       .job = "train",
                       .project = "team",
                       .job_id = "j1",
                       .what = job::Remark{"started on n1"}};

  EXPECT_EQ(job_event_to_json(event),
            R"({"time":"2026-01-01T00:00:00.123456789Z","job":"train","project":"team",)"
            R"("job_id":"j1","text":"started on n1",)"
            R"("fact":{"kind":"remark","text":"started on n1"}})");
  EXPECT_EQ(*job_event_from_json(job_event_to_json(event)), event);
}

TEST(EventWire, SaysOfARemovedJobWhichItWas) {
  const RemovedJob job{.id = "j1", .name = "train", .project = "team"};

  EXPECT_EQ(removed_job_to_json(job), R"({"id":"j1","name":"train","project":"team"})");
  EXPECT_EQ(*removed_job_from_json(removed_job_to_json(job)), job);
}

TEST(EventWire, ReportsWhatIsMissing) {
  EXPECT_EQ(job_event_from_json("{}").error().faults.size(), 3U);
  EXPECT_EQ(removed_job_from_json("{}").error().faults.size(), 3U);
}

}  // namespace
}  // namespace muster::api
