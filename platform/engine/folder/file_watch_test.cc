#include "engine/folder/file_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace muster::engine {
namespace {

class Watch : public testing::Test {
 protected:
  Watch() : path_(testing::TempDir() + "watched" + std::to_string(::getpid())) { append(""); }
  ~Watch() override { ::unlink(path_.c_str()); }

  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }

  base::EventLoop loop_;
  std::string path_;
};

TEST_F(Watch, ReportsAChangeToEveryWatcher) {
  FileWatch watch(loop_);
  int told = 0;
  const auto count = [&] {
    if (++told == 2) loop_.stop();
  };
  const auto one = watch.watch(path_, count);
  const auto two = watch.watch(path_, count);

  append("x");
  loop_.run();

  EXPECT_EQ(told, 2);
}

TEST_F(Watch, DoesNotCallADroppedHandle) {
  FileWatch watch(loop_);
  bool told_dropped = false;
  auto dropped = watch.watch(path_, [&] { told_dropped = true; });
  const auto kept = watch.watch(path_, [&] { loop_.stop(); });
  dropped.reset();

  append("x");
  loop_.run();

  EXPECT_FALSE(told_dropped);
}

TEST_F(Watch, AHandleMayOutliveTheWatch) {
  std::shared_ptr<void> handle;
  {
    FileWatch watch(loop_);
    handle = watch.watch(path_, [] {});
  }
  handle.reset();
}

TEST_F(Watch, ACallbackMayDropItsOwnHandle) {
  FileWatch watch(loop_);
  std::shared_ptr<void> handle;
  handle = watch.watch(path_, [&] {
    handle.reset();
    loop_.stop();
  });

  append("x");
  loop_.run();

  EXPECT_EQ(handle, nullptr);
}

}  // namespace
}  // namespace muster::engine
