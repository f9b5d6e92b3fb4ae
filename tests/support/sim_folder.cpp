// SPDX-License-Identifier: Apache-2.0
#include "support/sim_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace postrider::test {

void SimFolder::plan(Fault fault) {
  const std::lock_guard lock(mutex_);
  fault_ = fault;
  calls_ = 0;
}

int SimFolder::fault(bool writes, bool* half) {
  ++calls_;
  if (fault_.at == 0 || (fault_.writes_only && !writes)) return 0;
  if (calls_ != fault_.at && !(fault_.for_ever && calls_ > fault_.at)) return 0;
  if (fault_.error != 0) return -fault_.error;
  if (half != nullptr) *half = true;
  return 0;
}

std::size_t SimFolder::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}
std::size_t SimFolder::bytes_read() const {
  const std::lock_guard lock(mutex_);
  return read_;
}
std::size_t SimFolder::bytes_written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

void SimFolder::power_cut() {
  const std::lock_guard lock(mutex_);
  names_ = synced_names_;
  for (auto& [name, file] : names_) file->now = file->synced;
  handles_.clear();
  ++boot_;
}

std::vector<std::string> SimFolder::names() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const auto& [name, file] : names_) all.push_back(name);
  return all;
}
bool SimFolder::has(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  return names_.contains(name);
}
std::string SimFolder::content(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(name);
  return found == names_.end() ? "" : found->second->now;
}
void SimFolder::put(const std::string& name, std::string content) {
  const std::lock_guard lock(mutex_);
  const auto file = new_file();
  file->now = file->synced = std::move(content);
  names_[name] = synced_names_[name] = file;
}

int SimFolder::open(const std::string& name, Mode mode) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(name);
  if (const int error = fault(found == names_.end() && mode != Mode::read)) return error;
  if (found == names_.end() && (mode == Mode::read || vanished_)) return -ENOENT;
  const auto file = found == names_.end() ? names_[name] = new_file() : found->second;
  handles_[++next_handle_] = file;
  return next_handle_;
}
void SimFolder::close(int handle) noexcept {
  const std::lock_guard lock(mutex_);
  handles_.erase(handle);
}
std::int64_t SimFolder::size(int handle) {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(handles_.at(handle)->now.size());
}
std::int64_t SimFolder::read_at(int handle, char* bytes, std::size_t size, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  if (const int error = fault(false)) return error;
  const std::string& text = handles_.at(handle)->now;
  if (offset >= text.size()) return 0;
  const std::size_t count = text.copy(bytes, size, offset);
  read_ += count;
  return static_cast<std::int64_t>(count);
}
std::int64_t SimFolder::append(int handle, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  bool half = false;
  if (const int error = fault(true, &half)) return error;
  if (half) bytes = bytes.substr(0, (bytes.size() + 1) / 2);
  handles_.at(handle)->now += bytes;
  written_ += bytes.size();
  return static_cast<std::int64_t>(bytes.size());
}
std::int64_t SimFolder::write_at(int handle, std::string_view bytes, std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  bool half = false;
  if (const int error = fault(true, &half)) return error;
  if (half) bytes = bytes.substr(0, (bytes.size() + 1) / 2);
  std::string& text = handles_.at(handle)->now;
  if (text.size() < offset + bytes.size()) text.resize(offset + bytes.size());
  text.replace(offset, bytes.size(), bytes);
  written_ += bytes.size();
  return static_cast<std::int64_t>(bytes.size());
}
int SimFolder::truncate(int handle, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  if (const int error = fault(true)) return error;
  handles_.at(handle)->now.resize(size);
  return 0;
}
int SimFolder::sync(int handle) {
  const std::lock_guard lock(mutex_);
  if (const int error = fault(true)) return error;
  handles_.at(handle)->synced = handles_.at(handle)->now;
  return 0;
}
int SimFolder::sync_folder() {
  const std::lock_guard lock(mutex_);
  if (const int error = fault(true)) return error;
  synced_names_ = names_;
  return 0;
}
int SimFolder::rename(const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  if (const int error = fault(true)) return error;
  const auto found = names_.find(from);
  if (found == names_.end()) return -ENOENT;
  const auto file = found->second;
  names_.erase(found);
  names_[to] = file;
  return 0;
}
int SimFolder::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (const int error = fault(true)) return error;
  return names_.erase(name) == 1 ? 0 : -ENOENT;
}
int SimFolder::list(std::vector<std::string>& names) {
  const std::lock_guard lock(mutex_);
  if (const int error = fault(false)) return error;
  for (const auto& [name, file] : names_) names.push_back(name);
  return 0;
}
int SimFolder::mark(int handle, logger::FileMark& mark) {
  const std::lock_guard lock(mutex_);
  mark = {1, handles_.at(handle)->number};
  return 0;
}
int SimFolder::mark(const std::string& name, logger::FileMark& mark) {
  const std::lock_guard lock(mutex_);
  const auto found = names_.find(name);
  if (found == names_.end()) return -ENOENT;
  mark = {1, found->second->number};
  return 0;
}
int SimFolder::restore() {
  const std::lock_guard lock(mutex_);
  return std::exchange(vanished_, false) ? 1 : 0;
}
std::shared_ptr<SimFolder::File> SimFolder::new_file() {
  auto file = std::make_shared<File>();
  file->number = ++files_;
  return file;
}
void SimFolder::vanish() {
  const std::lock_guard lock(mutex_);
  names_.clear();
  vanished_ = true;
}
void SimFolder::change(const std::string& name, const std::function<void(std::string&)>& how) {
  const std::lock_guard lock(mutex_);
  how(names_.at(name)->now);
}
std::uint64_t SimFolder::boot() {
  const std::lock_guard lock(mutex_);
  return boot_;
}

}  // namespace postrider::test
