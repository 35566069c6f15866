#include "engine/container/fetch.h"

#include <optional>
#include <string_view>
#include <utility>

#include "engine/folder/fetched_tar.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;

struct Fetch::Transfer {
  std::optional<FetchedTar> tar;
  fs::path folder;
  Done done;
  Result<void> outcome;
  std::shared_ptr<void> under_way;

  void take(std::string_view piece) {
    if (outcome) outcome = tar->take(piece);
  }
};

Fetch::Fetch(base::EventLoop& loop) : unpacking_(loop) {}

void Fetch::content(DockerClient& client, const std::string& container, const std::string& path,
                    const fs::path& folder, int64_t most, Done done) {
  auto transfer = std::make_shared<Transfer>();
  transfer->folder = folder;
  transfer->done = std::move(done);
  auto tar = FetchedTar::open(folder, most);
  transfers_.insert(transfer);
  if (!tar) {
    transfer->outcome = std::move(tar).error();
    return unpack(transfer);
  }
  transfer->tar = *std::move(tar);
  // "." behind it: what is in the folder, and not the folder.
  transfer->under_way = client.get_archive(
      container, path + "/.",
      [weak = std::weak_ptr(transfer)](std::string_view piece) {
        if (const auto still = weak.lock()) still->take(piece);
      },
      [this, weak = std::weak_ptr(transfer)](Result<void> ended) {
        const auto still = weak.lock();
        if (!still) return;
        if (still->outcome && !ended) still->outcome = std::move(ended).error();
        unpack(still);
      });
}

void Fetch::unpack(const std::shared_ptr<Transfer>& transfer) {
  unpacking_.run(
      [transfer] {
        if (transfer->outcome) transfer->outcome = transfer->tar->unpack_into(transfer->folder);
      },
      [this, transfer] {
        transfers_.erase(transfer);
        transfer->under_way.reset();
        transfer->done(transfer->outcome);
      });
}

}  // namespace muster::engine
