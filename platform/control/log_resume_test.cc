// A reader of a log is cut off at any point and continues there: no byte is lost, and no byte comes
// twice.
#include <gtest/gtest.h>

#include <random>
#include <tuple>
#include <vector>

#include "base/fake_random.h"
#include "control/test_logs.h"
#include "control/test_parts.h"
#include "logs/log_follower.h"

namespace muster::control {
namespace {

using logs::log_position_of;
using logs::LogPosition;

using Source = std::tuple<int, std::string, std::optional<int>, job::LogStream>;

/// The bytes that were read of each source, newlines included.
using Printed = std::map<Source, std::string>;

Source source_of(const job::LogRecord& record) {
  return {record.attempt, record.task, record.rank, record.stream};
}

/// Reads as a client does that gets a place now and then: after a cut, it asks with the last place,
/// and skips as many bytes as it has received since then.
class Reader {
 public:
  Reader(Controller& controller, std::string job, job::LogQuery query)
      : controller_(controller), job_(std::move(job)), query_(std::move(query)) {
    begin();
  }

  /// Requests more, unless a request is pending.
  void pull() {
    if (asked_ || over_) return;
    asked_ = true;
    follower_->pull([this](const job::LogBatch& batch, bool end) {
      const std::vector<job::LogRecord> records = job::records_of(batch);
      asked_ = false;
      ++deliveries_;
      const std::string place = to_string(follower_->position());
      size_t left = cut_in_ ? *cut_in_ % (records.size() + 1) : records.size();
      for (const job::LogRecord& record : records) {
        if (left-- == 0) break;
        take(record);
      }
      if (std::exchange(cut_in_, std::nullopt)) {
        was_cut_ = true;
        return;
      }
      reach(place);
      over_ = end;
    });
  }

  /// The connection breaks in the middle of the next delivery.
  void cut_in(unsigned where) { cut_in_ = where; }
  /// The connection breaks now, without a pending delivery.
  void cut() { begin(); }
  /// Continues after a cut.
  void come_back_if_cut() {
    if (std::exchange(was_cut_, false)) begin();
  }

  bool over() const { return over_; }
  int deliveries() const { return deliveries_; }
  const Printed& printed() const { return printed_; }

 private:
  void begin() {
    asked_ = false;
    follower_ = controller_.follow_logs(job_, query_);
    if (!place_.empty()) {
      const auto place = log_position_of(place_);
      ASSERT_TRUE(place) << place_;
      follower_->resume(*place);
    }
    again_ = since_place_;
  }

  void take(job::LogRecord record) {
    const Source source = source_of(record);
    uint64_t& again = again_[source];
    if (again > 0 && !job::drop_seen(record, again)) return;
    since_place_[source] += job::printed_size(record);
    printed_[source] += record.text + (record.continues ? "" : "\n");
  }

  void reach(const std::string& place) {
    place_ = place;
    since_place_ = again_;
  }

  Controller& controller_;
  std::string job_;
  job::LogQuery query_;
  std::unique_ptr<logs::LogFollower> follower_;
  std::string place_;
  std::map<Source, uint64_t> since_place_;
  std::map<Source, uint64_t> again_;
  Printed printed_;
  std::optional<unsigned> cut_in_;
  bool was_cut_ = false;
  bool asked_ = false;
  bool over_ = false;
  int deliveries_ = 0;
};

class LogResume : public testing::Test {
 protected:
  LogResume() {
    engine_.offered = {{.name = "n1", .task_slots = 100, .gpus = 8, .gpu_model = "V100"}};
    controller_ = std::make_unique<Controller>(
        ControllerDependencies{
            .loop = loop_, .store = store_, .engine = engine_, .clock = clock_, .random = random_},
        SiteFacts{.user = "ada"});
  }

  void settle() {
    for (int round = 0; round < 10; ++round) {
      loop_.post([this] { loop_.stop(); });
      loop_.run();
      const auto running = engine_.running;
      for (const auto& [gang, task] : running) {
        if (task.starts_with("worker")) engine_.answer(gang, task);
      }
    }
  }

  void submit(int retries) {
    job::JobSpec spec = mpi("dist", "default", 2);
    spec.scheduling.retries = retries;
    const auto job = controller_->submit(spec, "");
    ASSERT_TRUE(job) << job.error().to_string();
    id_ = job->id;
    settle();
  }

  const job::Job& job() { return **controller_->jobs().find(id_); }
  engine::GangId gang() { return {id_, job().attempt}; }

  /// All tasks of the present attempt end; with a code that is not 0, another begins.
  void end_attempt(int code) {
    const engine::GangId ending = gang();
    for (const char* task : {"launcher", "worker-0", "worker-1"}) {
      engine_.end_for_good(ending, task, {.code = task[0] == 'l' ? code : 0});
    }
    settle();
  }

  void print(const std::string& task, std::string bytes, std::optional<int> rank = {},
             job::LogStream stream = job::LogStream::kOutput) {
    truth_[{gang().attempt, task, rank, stream}] += bytes;
    engine_.append(gang(), task, {clock_.now(), stream, std::move(bytes), rank});
  }

  /// The complete output of a reader of everything. It ends incomplete last lines.
  Printed truth() const {
    Printed whole = truth_;
    for (auto& [source, bytes] : whole) {
      if (!bytes.empty() && bytes.back() != '\n') bytes += '\n';
    }
    return whole;
  }

  base::EventLoop loop_;
  MortalStore store_;
  GrowingLogs engine_{loop_};
  base::FakeClock clock_;
  base::FakeRandom random_;
  std::unique_ptr<Controller> controller_;
  std::string id_;
  Printed truth_;
};

TEST_F(LogResume, ContinuesWithinALineWhoseBeginningWasRead) {
  submit(0);
  print("launcher", "begin");
  Reader reader(*controller_, id_, {.follow = true});
  reader.pull();
  // The pause after which an incomplete line is shown.
  while (reader.deliveries() == 0) settle();
  reader.cut();
  print("launcher", " and end\nanother");
  end_attempt(0);
  while (!reader.over()) {
    reader.pull();
    settle();
  }

  EXPECT_EQ(reader.printed(), truth());
}

TEST_F(LogResume, FollowsTheLastLinesThatThereWereWhenItBegan) {
  submit(0);
  print("launcher", "1\n2\n3\n4\n");
  Reader reader(*controller_, id_, {.follow = true, .tail = 2});
  reader.pull();
  settle();  // the place
  reader.cut_in(1);
  reader.pull();
  settle();
  reader.come_back_if_cut();
  print("launcher", "5\n6\n7\n");
  end_attempt(0);
  while (!reader.over()) {
    reader.pull();
    settle();
  }

  EXPECT_EQ(reader.printed(),
            (Printed{{{1, "launcher", std::nullopt, job::LogStream::kOutput}, "3\n4\n5\n6\n7\n"}}));
}

TEST_F(LogResume, ReportsAGapOnceAndContinuesAfterIt) {
  submit(0);
  print("launcher", "half a line");
  engine_.append(gang(), "launcher",
                 {.time = clock_.now(),
                  .stream = job::LogStream::kNotice,
                  .bytes = "much was cut\n",
                  .cut = 5'000});
  print("launcher", "and the rest of another\n");
  Reader whole(*controller_, id_, {.follow = true});
  Reader cut(*controller_, id_, {.follow = true});
  Reader last(*controller_, id_, {.follow = true, .tail = 1});
  for (Reader* reader : {&whole, &cut, &last}) reader->pull();
  settle();
  cut.cut();
  print("launcher", "more\n");
  end_attempt(0);
  for (Reader* reader : {&whole, &cut, &last}) {
    while (!reader->over()) {
      reader->pull();
      settle();
    }
  }

  const Source output{1, "launcher", std::nullopt, job::LogStream::kOutput};
  const Source notice{1, "launcher", std::nullopt, job::LogStream::kNotice};
  const Printed expected{{output, "half a line\nand the rest of another\nmore\n"},
                         {notice, "much was cut\n"}};
  EXPECT_EQ(whole.printed(), expected);
  EXPECT_EQ(cut.printed(), expected);
  EXPECT_EQ(last.printed(), (Printed{{output, "and the rest of another\nmore\n"}}));
}

TEST_F(LogResume, LimitsTheMemoryForTheLastLines) {
  submit(0);
  constexpr int kLines = 400;
  constexpr size_t kLength = 60'000;
  for (int i = 0; i < kLines; ++i) print("launcher", std::string(kLength, 'x') + "\n");
  print("launcher", "the last\n");
  end_attempt(0);

  Reader reader(*controller_, id_, {.tail = 1'000'000'000});
  while (!reader.over()) {
    reader.pull();
    settle();
  }

  const std::string& printed = reader.printed().begin()->second;
  EXPECT_TRUE(printed.ends_with("the last\n"));
  EXPECT_LE(printed.size(), size_t{16} << 20);
  EXPECT_GE(printed.size(), size_t{15} << 20);
}

TEST_F(LogResume, ReadsAgainOnlyWhatIsPending) {
  submit(0);
  print("worker-0", "a line that is never ended", 1);
  for (int i = 0; i < 50; ++i) print("worker-0", std::string(60'000, 'x') + "\n", 2);
  const auto follower = controller_->follow_logs(id_, {.follow = true});
  LogPosition place;
  bool caught_up = false;
  while (!caught_up) {
    follower->pull([&](const job::LogBatch&, bool) {
      place = follower->position();
      caught_up = place.find(1, "worker-0")->at >= 50 * 60'000;
    });
    settle();
  }
  const LogPosition::Source* const source = place.find(1, "worker-0");
  EXPECT_LE(source->at - source->from, logs::kFarthestPending);
}

/// One run: random tasks, ranks and streams print random pieces of lines over two attempts, while
/// readers with all kinds of queries are cut off at random.
class RandomLogResume : public LogResume, public testing::WithParamInterface<unsigned> {
 protected:
  unsigned below(unsigned limit) { return generator_() % limit; }

  void print_something() {
    static const std::vector<std::string> tasks{"launcher", "worker-0", "worker-1"};
    clock_.advance(std::chrono::milliseconds(below(3)));
    std::string bytes;
    const unsigned pieces = 1 + below(4);
    for (unsigned i = 0; i < pieces; ++i) {
      bytes += std::string(below(20) == 0 ? 30'000 : below(30), static_cast<char>('a' + below(26)));
      if (below(3) != 0) bytes += '\n';
    }
    if (bytes.empty()) return;
    const auto rank = below(3) == 0 ? std::nullopt : std::optional(static_cast<int>(below(3)));
    const auto stream = below(4) == 0 ? job::LogStream::kError : job::LogStream::kOutput;
    print(tasks[below(3)], std::move(bytes), rank, stream);
  }

  /// Two readers of each query: one is cut off, the other is not.
  struct Pair {
    std::unique_ptr<Reader> cut;
    std::unique_ptr<Reader> whole;
  };
  void add_pair(const job::LogQuery& query) {
    Pair pair{std::make_unique<Reader>(*controller_, id_, query),
              std::make_unique<Reader>(*controller_, id_, query)};
    pair.cut->pull();
    pair.whole->pull();
    settle();
    pairs_.push_back(std::move(pair));
  }

  void step(Pair& pair) {
    pair.whole->pull();
    pair.cut->pull();
    if (below(4) == 0) pair.cut->cut_in(below(1000));
    if (below(10) == 0 && !pair.cut->over()) pair.cut->cut();
    pair.cut->come_back_if_cut();
  }

  std::mt19937 generator_{GetParam()};
  std::vector<Pair> pairs_;
};

TEST_P(RandomLogResume, LosesAndDoublesNotAByte) {
  submit(1);
  for (int i = 0; i < 20; ++i) print_something();
  add_pair({.follow = true});
  add_pair({.follow = true, .task = "worker-1"});
  add_pair({.follow = true, .since = clock_.now() - std::chrono::milliseconds(10)});
  add_pair({.follow = true, .tail = 15});
  add_pair({.follow = true, .since = clock_.now() - std::chrono::milliseconds(10), .tail = 3});
  add_pair({.follow = true, .tail = 0});
  add_pair({.follow = true, .rank = 1});
  add_pair({.follow = true, .grep = "[a-e]{2}"});
  add_pair({.follow = true, .task = "worker-0", .rank = 2, .grep = "x"});
  add_pair({.follow = true, .grep = "^[a-m]", .tail = 5});
  for (int attempt = 1; attempt <= 2; ++attempt) {
    for (int i = 0; i < 80; ++i) {
      print_something();
      for (Pair& pair : pairs_) step(pair);
      if (below(3) == 0) settle();
    }
    end_attempt(2 - attempt);
  }
  ASSERT_TRUE(job::is_final(job().phase));
  for (Pair& pair : pairs_) {
    while (!pair.whole->over() || !pair.cut->over()) {
      step(pair);
      settle();
    }
    EXPECT_EQ(pair.cut->printed(), pair.whole->printed());
    EXPECT_GT(pair.cut->deliveries(), 0);
  }
  EXPECT_EQ(pairs_.front().whole->printed(), truth());
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomLogResume, testing::Range(1U, 31U));

}  // namespace
}  // namespace muster::control
