#include "api/log_query.h"

#include <gtest/gtest.h>

#include "job/log_pattern.h"

namespace muster::api {
namespace {

using job::LogQuery;

TEST(LogQuery, IsReadBackAsItWasWritten) {
  const LogQuery query{.follow = true,
                       .task = "worker-0",
                       .rank = 0,
                       .grep = "loss: [0-9]+",
                       .since = base::Time(std::chrono::nanoseconds(1)),
                       .tail = 0};

  const auto read = log_query_from_parameters(log_query_to_parameters(query));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->follow, query.follow);
  EXPECT_EQ(read->task, query.task);
  EXPECT_EQ(read->rank, query.rank);
  EXPECT_EQ(read->grep, query.grep);
  EXPECT_EQ(read->since, query.since);
  EXPECT_EQ(read->tail, query.tail);
}

TEST(LogQuery, AsksForNothingInParticularByDefault) {
  EXPECT_TRUE(log_query_to_parameters({}).empty());
  const auto read = log_query_from_parameters({});
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->follow || read->task || read->rank || read->since || read->tail);
}

TEST(LogQuery, ReportsEveryFaultAtOnce) {
  const auto read = log_query_from_parameters({{"follow", "yes"},
                                               {"since", "today"},
                                               {"tail", "-1"},
                                               {"tails", "5"},
                                               {"x", ""},
                                               {"rank", "one"},
                                               {"grep", "("}});

  const std::string pattern_fault = job::LogPattern::compile("(").error().what;
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().to_string(),
            "the query for logs is wrong\n"
            "  follow: 'yes' is neither true nor false\n"
            "  grep: " +
                pattern_fault +
                "\n"
                "  rank: 'one' is not the number of a rank\n"
                "  since: 'today' is not a time; write it as 2026-01-31T12:34:56Z\n"
                "  tail: '-1' is not a number of lines\n"
                "  tails: is not a parameter; did you mean 'tail'?\n"
                "  x: is not a parameter");
}

}  // namespace
}  // namespace muster::api
