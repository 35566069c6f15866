#include "server/artifact_streams.h"

#include <algorithm>
#include <utility>

#include "api/file_wire.h"

namespace muster::server {

namespace {

using workspace::LeftFile;

constexpr size_t kPiece = 256 << 10;
/// Summed up in one go, a tenth of a second or so: then whoever else waits has a turn, and it is
/// seen whether the client is still there.
constexpr size_t kSummedAtOnce = size_t{32} << 20;
constexpr size_t kMostSums = 100'000;

api::Artifact::Kind kind_of(LeftFile::Kind kind) {
  switch (kind) {
    case LeftFile::Kind::kFile:
      return api::Artifact::Kind::kFile;
    case LeftFile::Kind::kLink:
      return api::Artifact::Kind::kLink;
    case LeftFile::Kind::kFolder:
      return api::Artifact::Kind::kFolder;
    case LeftFile::Kind::kPipe:
      return api::Artifact::Kind::kPipe;
    case LeftFile::Kind::kSocket:
      return api::Artifact::Kind::kSocket;
    case LeftFile::Kind::kDevice:
      return api::Artifact::Kind::kDevice;
  }
  return api::Artifact::Kind::kFile;
}

/// What both have in common: pieces that are made on another thread, one at a time.
class MadeElsewhere : public http::BodyStream {
 public:
  explicit MadeElsewhere(MayGoOn may_go_on) : may_go_on_(std::move(may_go_on)) {}

 protected:
  /// `make` runs on the other thread: it touches only what it holds. Nothing: that was the end.
  using Make = std::function<std::optional<std::string>()>;
  void make(base::Background& background, Make make, Deliver deliver) {
    if (!may_go_on_()) return deliver(std::nullopt);
    const auto piece = std::make_shared<std::optional<std::string>>();
    background.run([piece, make = std::move(make)] { *piece = make(); },
                   [piece, deliver = std::move(deliver), alive = std::weak_ptr<bool>(alive_)] {
                     if (!alive.expired()) deliver(std::move(*piece));
                   });
  }

 private:
  MayGoOn may_go_on_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class FileStream : public MadeElsewhere {
 public:
  FileStream(std::shared_ptr<ArtifactWorkers> workers, workspace::OpenedFile file, int64_t offset,
             int64_t length, MayGoOn may_go_on)
      : MadeElsewhere(std::move(may_go_on)),
        workers_(std::move(workers)),
        file_(std::make_shared<workspace::OpenedFile>(std::move(file))),
        at_(offset),
        end_(offset + length) {}

  void pull(Deliver deliver) override {
    if (at_ == end_) return deliver(std::nullopt);
    const auto most = static_cast<size_t>(std::min<int64_t>(kPiece, end_ - at_));
    const auto read = [file = file_, at = at_, most]() -> std::optional<std::string> {
      auto bytes = workspace::read_at(file->fd, at, most);
      if (!bytes || bytes->empty()) return std::nullopt;
      return *std::move(bytes);
    };
    at_ += static_cast<int64_t>(most);
    make(workers_->reading, read, std::move(deliver));
  }

 private:
  std::shared_ptr<ArtifactWorkers> workers_;
  std::shared_ptr<workspace::OpenedFile> file_;
  int64_t at_;
  int64_t end_;
};

/// The state of a list on its way; touched by the summing thread alone once it is made.
class ListInTheMaking {
 public:
  ListInTheMaking(std::filesystem::path folder, workspace::LeftFiles page)
      : folder_(std::move(folder)), page_(std::move(page)) {}

  /// The next piece, empty where there is nothing to show for it yet.
  std::optional<std::string> next(ChecksumCache& sums) {
    if (ended_) return std::nullopt;
    std::string text(begun_ ? "" : api::artifacts_head());
    begun_ = true;
    size_t budget = kSummedAtOnce;
    while (at_ < page_.files.size() && budget > 0 && text.size() < kPiece) {
      const LeftFile& file = page_.files[at_];
      const auto sum = sum_of(file, sums, budget);
      if (!sum) return text;
      text += artifact_json(file, *sum, at_ == 0);
      ++at_;
    }
    if (at_ < page_.files.size()) return text;
    ended_ = true;
    return text + api::artifacts_tail(!page_.whole);
  }

 private:
  /// Nothing: it needs another turn. Empty: it has none.
  std::optional<std::string> sum_of(const LeftFile& file, ChecksumCache& sums, size_t& budget) {
    if (file.kind != LeftFile::Kind::kFile) return "";
    if (auto known = sums.find(file.state)) return known;
    if (!summing_) {
      auto opened = workspace::open_left(folder_, file.path);
      // Another than was listed has another size: its sum would belong to neither.
      if (!opened || opened->state != file.state) return "";
      summing_.emplace(*std::move(opened));
    }
    const auto most = static_cast<size_t>(
        std::min<int64_t>(static_cast<int64_t>(budget), std::max<int64_t>(file.bytes, 1)));
    budget -= most;
    if (!summing_->go_on(most)) return std::nullopt;
    const auto sum = summing_->sum();
    summing_.reset();
    if (sum) sums.keep(file.state, *sum);
    return sum.value_or("");
  }

  std::filesystem::path folder_;
  workspace::LeftFiles page_;
  size_t at_ = 0;
  std::optional<workspace::Summing> summing_;
  bool begun_ = false;
  bool ended_ = false;
};

class ChecksumStream : public MadeElsewhere {
 public:
  ChecksumStream(std::shared_ptr<ArtifactWorkers> workers, ListInTheMaking list, MayGoOn may_go_on)
      : MadeElsewhere(std::move(may_go_on)),
        workers_(std::move(workers)),
        list_(std::make_shared<ListInTheMaking>(std::move(list))) {}

  void pull(Deliver deliver) override {
    make(
        workers_->summing,
        [list = list_, workers = workers_.get()] { return list->next(workers->sums); },
        std::move(deliver));
  }

 private:
  std::shared_ptr<ArtifactWorkers> workers_;
  std::shared_ptr<ListInTheMaking> list_;
};

}  // namespace

std::optional<std::string> ChecksumCache::find(const workspace::FileState& state) const {
  const std::lock_guard lock(mutex_);
  const auto found = sums_.find(state);
  return found == sums_.end() ? std::nullopt : std::optional(found->second);
}

void ChecksumCache::keep(const workspace::FileState& state, const std::string& sum) {
  const std::lock_guard lock(mutex_);
  // To begin anew now and then is simpler than to know which was asked for last.
  if (sums_.size() >= kMostSums) sums_.clear();
  sums_[state] = sum;
}

std::shared_ptr<http::BodyStream> checksum_stream(std::shared_ptr<ArtifactWorkers> workers,
                                                  std::filesystem::path folder,
                                                  workspace::LeftFiles page, MayGoOn may_go_on) {
  return std::make_shared<ChecksumStream>(std::move(workers),
                                          ListInTheMaking(std::move(folder), std::move(page)),
                                          std::move(may_go_on));
}

std::shared_ptr<http::BodyStream> file_stream(std::shared_ptr<ArtifactWorkers> workers,
                                              workspace::OpenedFile file, int64_t offset,
                                              int64_t length, MayGoOn may_go_on) {
  return std::make_shared<FileStream>(std::move(workers), std::move(file), offset, length,
                                      std::move(may_go_on));
}

std::string artifact_json(const LeftFile& file, const std::string& sum, bool is_first) {
  std::string text;
  api::append_artifact(text,
                       {.path = file.path,
                        .kind = kind_of(file.kind),
                        .bytes = file.bytes,
                        .modified = file.modified,
                        .sha256 = sum},
                       is_first);
  return text;
}

}  // namespace muster::server
