#include "control/metric_points.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

using namespace std::chrono_literals;
using job::MetricPoint;
using Points = std::vector<MetricPoint>;

base::Time at(std::chrono::nanoseconds since) {
  return base::Time(1'700'000'000s) + since;  // a whole number of ten seconds
}

Points every_second(int count) {
  Points points;
  for (int i = 0; i < count; ++i) points.push_back({at(std::chrono::seconds(i)), double(i)});
  return points;
}

TEST(AskedPoints, AreAllWhereNothingIsAsked) {
  EXPECT_EQ(asked_points(every_second(5), {}), every_second(5));
  EXPECT_EQ(asked_points({}, {.interval = 1s, .last = true}), Points{});
}

TEST(AskedPoints, AreThoseOfTheTimeWithItsEnds) {
  EXPECT_EQ(asked_points(every_second(9), {.since = at(2s), .until = at(4s)}),
            (Points{{at(2s), 2}, {at(3s), 3}, {at(4s), 4}}));
}

TEST(AskedPoints, AreTheMeansOfIntervalsThatHaveSome) {
  const Points points{{at(1s), 1}, {at(9s), 3}, {at(30s), 5}, {at(31s), 6}};
  EXPECT_EQ(asked_points(points, {.interval = 10s}), (Points{{at(0s), 2}, {at(30s), 5.5}}));
}

TEST(AskedPoints, AreOfTheSameIntervalsInEverySeries) {
  const Points one{{at(11s), 1}};
  const Points other{{at(19s), 2}};
  EXPECT_EQ(asked_points(one, {.interval = 10s})[0].time,
            asked_points(other, {.interval = 10s})[0].time);
}

TEST(AskedPoints, AreTheNewestAloneWhereThatIsAsked) {
  EXPECT_EQ(asked_points(every_second(9), {.last = true}), (Points{{at(8s), 8}}));
}

TEST(AskedPoints, AreNeverTooManyAndEndWithTheNewest) {
  const Points asked = asked_points(every_second(4500), {});
  EXPECT_LE(asked.size(), job::kMostPoints);
  EXPECT_EQ(asked.front(), (MetricPoint{at(2s), 1}));  // 0, 1 and 2
  EXPECT_EQ(asked.back().time, at(4499s));
}

TEST(AskedPoints, HaveMeansOfValuesWhoseSumIsNone) {
  const Points points{{at(1s), 1.5e308}, {at(2s), 1.5e308}};
  EXPECT_EQ(asked_points(points, {.interval = 10s})[0].value, 1.5e308);
}

TEST(MakeCoarser, LeavesTheNewestQuarterAndHalvesTheRest) {
  Points points = every_second(16);
  make_coarser(points);
  EXPECT_EQ(points.size(), 10U);
  EXPECT_EQ(points.front(), (MetricPoint{at(1s), 0.5}));
  EXPECT_EQ(points[5], (MetricPoint{at(11s), 10.5}));
  EXPECT_EQ(points[6], (MetricPoint{at(12s), 12}));
  EXPECT_EQ(points.back(), (MetricPoint{at(15s), 15}));
}

}  // namespace
}  // namespace muster::control
