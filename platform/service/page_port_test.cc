#include "service/page_port.h"

#include <gtest/gtest.h>

#include "base/fake_random.h"
#include "base/files.h"
#include "base/test_folder.h"

namespace muster::service {
namespace {

using server::LoopbackAddress;

class PagePortTest : public testing::Test {
 protected:
  base::TestFolder folder_;
  base::EventLoop loop_;
  base::FakeRandom random_;
  http::Server server_{
      loop_, [](const http::Request&, const http::Respond& respond) { respond({.body = "{}"}); }};
  std::filesystem::path file_ = folder_.path() / "page-port";

  void settle() {
    loop_.post([this] { loop_.stop(); });
    loop_.run();
  }
};

TEST_F(PagePortTest, IsOpenOnlyOnRequest) {
  PagePort port(loop_, random_, server_, file_);
  port.open_again();
  EXPECT_EQ(port.address(), std::nullopt);

  const auto opened = port.open();

  ASSERT_TRUE(opened) << opened.error().to_string();
  EXPECT_GT(opened->port, 0);
  EXPECT_EQ(port.address(), *opened);
  const auto again = port.open();
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *opened);
}

TEST_F(PagePortTest, HasTheSameAddressAfterARestart) {
  LoopbackAddress before;
  {
    PagePort port(loop_, random_, server_, file_);
    before = *port.open();
    server_.close_loopback();
  }

  PagePort port(loop_, random_, server_, file_);
  port.open_again();

  EXPECT_EQ(port.address(), before);
}

TEST_F(PagePortTest, IsNotOpenAgainAfterItWasClosed) {
  PagePort port(loop_, random_, server_, file_);
  ASSERT_TRUE(port.open());
  port.close();
  settle();
  EXPECT_EQ(port.address(), std::nullopt);

  port.open_again();

  EXPECT_EQ(port.address(), std::nullopt);
}

TEST_F(PagePortTest, ForgetsAPortThatAnotherProgramHasTaken) {
  http::Server other(loop_, [](const http::Request&, const http::Respond&) {});
  const auto taken = other.listen_on_loopback(0);
  ASSERT_TRUE(taken);
  ASSERT_TRUE(base::write_file(file_, to_text({.name = "ui-abc.localhost", .port = *taken})));

  PagePort port(loop_, random_, server_, file_);
  port.open_again();

  EXPECT_EQ(port.address(), std::nullopt);
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST(LoopbackAddressText, IsReadOnlyAsItIsWritten) {
  const LoopbackAddress address{.name = "ui-k3x9a2.localhost", .port = 41873};
  EXPECT_EQ(to_text(address), "41873 ui-k3x9a2.localhost\n");
  EXPECT_EQ(loopback_address_of(to_text(address)), address);
  for (const char* const text :
       {"", "41873", "0 ui-a.localhost\n", "70000 ui-a.localhost\n", "1 evil.example.org\n",
        "1 ui-a.localhost", "1 ui-<b>.localhost\n", "-1 ui-a.localhost\n"}) {
    EXPECT_EQ(loopback_address_of(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace muster::service
