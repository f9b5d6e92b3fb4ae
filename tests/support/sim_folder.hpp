// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "logger/spill_folder.hpp"

namespace postrider::test {

/// A folder in memory whose disk fails when it is told to. Thread-safe.
class SimFolder final : public logger::SpillFolder {
 public:
  struct Fault {
    std::size_t at = 0;        ///< the number of the call that fails, from 1; 0 for none
    bool for_ever = false;     ///< and all calls after it
    int error = 0;             ///< errno; 0 makes a write write only half
    bool writes_only = false;  ///< reads, opens and lists work: a full disk
  };

  void plan(Fault fault);
  /// How many calls there were, `close` and `size` not counted.
  [[nodiscard]] std::size_t calls() const;
  [[nodiscard]] std::size_t bytes_read() const;
  [[nodiscard]] std::size_t bytes_written() const;

  /// What was not synced is gone: bytes of files, and names of files.
  void power_cut();

  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] std::string content(const std::string& name) const;
  /// Somebody removes the folder with all that is in it. What is open stays so.
  void vanish();
  /// Somebody cuts a file, or adds to it.
  void change(const std::string& name, const std::function<void(std::string&)>& how);
  /// As if somebody else had written it, and synced.
  void put(const std::string& name, std::string content);

  int open(const std::string& name, Mode mode) override;
  void close(int handle) noexcept override;
  std::int64_t size(int handle) override;
  std::int64_t read_at(int handle, char* bytes, std::size_t size, std::uint64_t offset) override;
  std::int64_t append(int handle, std::string_view bytes) override;
  std::int64_t write_at(int handle, std::string_view bytes, std::uint64_t offset) override;
  int truncate(int handle, std::uint64_t size) override;
  int sync(int handle) override;
  int sync_folder() override;
  int rename(const std::string& from, const std::string& to) override;
  int remove(const std::string& name) override;
  int list(std::vector<std::string>& names) override;
  int mark(int handle, logger::FileMark& mark) override;
  int mark(const std::string& name, logger::FileMark& mark) override;
  int restore() override;
  std::uint64_t boot() override;

 private:
  struct File {
    std::uint64_t number = 0;
    std::string now;
    std::string synced;
  };
  using Names = std::map<std::string, std::shared_ptr<File>>;

  [[nodiscard]] std::shared_ptr<File> new_file();
  /// 0, or the negative errno that this call must answer with. `half`: it shall write half.
  int fault(bool writes, bool* half = nullptr);

  mutable std::mutex mutex_;
  Names names_;
  Names synced_names_;
  std::map<int, std::shared_ptr<File>> handles_;
  int next_handle_ = 0;
  Fault fault_;
  std::size_t calls_ = 0;
  std::size_t read_ = 0;
  std::size_t written_ = 0;
  std::uint64_t boot_ = 1;
  std::uint64_t files_ = 0;
  bool vanished_ = false;
};

}  // namespace postrider::test
