// A simulated disk: every change that the process it is preloaded into makes below one folder is written to a
// journal, together with the syncs, so that a test can compute what a power cut would have left (`kill -9` cannot
// show that: the page cache outlives the process). It can also fail, or lie about syncs, on command.
//
//     cc -shared -fPIC -O2 disk.c -o disk.so
//     LD_PRELOAD=./disk.so DISK_FOLDER=/data DISK_JOURNAL=/tmp/journal DISK_CONTROL=/tmp/control DISK_SYNC_US=2000 program
//
// How it works
// - The libc functions that change files are replaced by functions that make the raw system call and then append
//   one record to the journal, both under one lock: the order of the journal is the order of the changes.
// - A record is one writev(2) to an append-only file. A kill can truncate the last record, which no caller was
//   told about yet; it cannot reorder or lose others.
// - A sync takes DISK_SYNC_US without holding the lock, like a disk would, and is recorded when it is over, with
//   the length the journal had when it began: it vouches for what was written before that and for nothing else.
//   The real sync is never made, the journal being all that counts.
// - Files are known by inode. The kernel does not reuse an inode while a descriptor is open, and a record says when
//   a file is new, so the reader can tell two files with the same inode apart.
// - What cannot be modelled (writable shared mappings, O_SYNC, O_TMPFILE ...) is recorded as UNKNOWN, and the reader
//   of the journal stops at it: nothing is missed silently. Writes past libc (raw system calls, io_uring) are not
//   seen; a test compares the journal's final state with the real folder to rule them out.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#undef open
#undef creat

// The kinds of record, and what `inode`, `place` and the bytes that follow mean in each.
enum kind {
    ROOT = 'R',      // inode of the folder itself
    CREATE = 'C',    // inode; path of a new file
    DIRECTORY = 'D', // inode; path of a new directory
    LINK = 'L',      // inode; another path of it
    WRITE = 'W',     // inode, offset; the bytes
    TRUNCATE = 'T',  // inode, new size
    SYNC = 'S',      // inode, length of the journal when the sync began
    FAILED = 'F',    // the same, of a sync that failed
    UNLINK = 'U',    // path
    RENAME = 'N',    // old path, a zero byte, new path
    UNKNOWN = '?',   // words
};

struct head {
    uint64_t kind, length, inode, place;
};

// The bytes of the control file, which the test rewrites while the process runs.
enum { WRITE_ERRNO, SYNC_ERRNO, LIES, ONLY_GROWTH_FAILS };

enum { DESCRIPTORS = 1 << 16, PARTS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[PATH_MAX];
static size_t folder_length;
static int journal = -1;         // below 0: the shim stands aside
static uint64_t journal_length;
static useconds_t sync_time;
static const volatile unsigned char *control;
static _Atomic ino_t inodes[DESCRIPTORS]; // of the descriptors of files below the folder; 0 for all others
static _Atomic char mappable[DESCRIPTORS]; // SQLite's -shm: mapped, rebuilt after a crash, its content is no matter

static ino_t inode_of(int fd) {
    return fd >= 0 && fd < DESCRIPTORS ? inodes[fd] : 0;
}

// ---- the journal --------------------------------------------------------------------------------------------------

// Appends one record; `parts` may hold more than `length` bytes. The caller holds the lock.
static void record(enum kind kind, ino_t inode, uint64_t place, const struct iovec *parts, int count, size_t length) {
    struct head head = {kind, length, inode, place};
    struct iovec all[PARTS + 1] = {{&head, sizeof head}};
    size_t left = length;
    int n = 1;
    for (int i = 0; i < count && left > 0; i++) {
        size_t take = parts[i].iov_len < left ? parts[i].iov_len : left;
        all[n++] = (struct iovec){parts[i].iov_base, take};
        left -= take;
    }
    int before = errno;
    ssize_t wrote = syscall(SYS_writev, journal, all, n);
    if (wrote != (ssize_t)(sizeof head + length)) {
        static const char words[] = "disk.c: the journal cannot be written\n";
        syscall(SYS_write, 2, words, sizeof words - 1);
        abort();
    }
    journal_length += wrote;
    errno = before;
}

static void record_text(enum kind kind, ino_t inode, const char *text, size_t length) {
    struct iovec part = {(void *)text, length};
    record(kind, inode, 0, &part, 1, length);
}

static void unknown(const char *what) {
    record_text(UNKNOWN, 0, what, strlen(what));
}

// ---- paths --------------------------------------------------------------------------------------------------------

// The part of an absolute path below the folder, "" for the folder itself, or NULL when it lies elsewhere.
static const char *below(const char *path) {
    if (strncmp(path, folder, folder_length) != 0) return NULL;
    if (path[folder_length] == '\0') return "";
    return path[folder_length] == '/' ? path + folder_length + 1 : NULL;
}

// The same for a path as the program gave it; the last component need not exist and is not followed.
static const char *locate(int directory, const char *path, char out[PATH_MAX * 2]) {
    char given[PATH_MAX * 2], parent[PATH_MAX];
    if (path[0] == '/' || directory == AT_FDCWD) snprintf(given, sizeof given, "%s", path);
    else snprintf(given, sizeof given, "/proc/self/fd/%d/%s", directory, path);
    char *slash = strrchr(given, '/');
    const char *name = slash ? slash + 1 : given;
    char last[NAME_MAX + 1];
    if (snprintf(last, sizeof last, "%s", name) > NAME_MAX) return NULL; // the kernel will refuse it too
    if (slash) slash[slash == given] = '\0';
    if (!realpath(slash ? given : ".", parent)) return NULL;
    snprintf(out, PATH_MAX * 2, "%s/%s", strcmp(parent, "/") ? parent : "", last);
    return below(out);
}

static int ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

// ---- start --------------------------------------------------------------------------------------------------------

__attribute__((constructor)) static void start(void) {
    const char *where = getenv("DISK_FOLDER"), *to = getenv("DISK_JOURNAL");
    const char *by = getenv("DISK_CONTROL"), *us = getenv("DISK_SYNC_US");
    struct stat stat_folder, stat_journal;
    if (!where || !to) return;
    if (!realpath(where, folder) || stat(folder, &stat_folder) != 0) abort();
    folder_length = strlen(folder);
    sync_time = us ? atoi(us) : 0;
    if (by) {
        int fd = syscall(SYS_openat, AT_FDCWD, by, O_RDONLY | O_CLOEXEC, 0);
        void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
        if (fd < 0 || page == MAP_FAILED) abort();
        syscall(SYS_close, fd);
        control = page;
    }
    journal = syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (journal < 0 || fstat(journal, &stat_journal) != 0) abort();
    journal_length = stat_journal.st_size; // a process started again after a kill goes on where the last one stopped
    record(ROOT, stat_folder.st_ino, 0, NULL, 0, 0);
}

static int commanded(int what) {
    return control ? control[what] : 0;
}

// ---- descriptors --------------------------------------------------------------------------------------------------

static void opened(int fd, int existed, int flags) {
    char link[64], path[PATH_MAX + 1];
    struct stat st;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, PATH_MAX);
    if (n < 0) return;
    path[n] = '\0';
    const char *name = below(path);
    if (!name || fstat(fd, &st) != 0) return;
    if (fd < DESCRIPTORS) {
        mappable[fd] = ends_with(name, "-shm");
        inodes[fd] = st.st_ino;
    } else {
        unknown("a descriptor beyond the table");
    }
    if ((flags & O_TMPFILE) == O_TMPFILE) unknown("O_TMPFILE");
    if (flags & O_DSYNC) unknown("O_SYNC or O_DSYNC"); // O_SYNC includes the bit of O_DSYNC
    if (!existed) record_text(CREATE, st.st_ino, name, strlen(name));
    else if (flags & O_TRUNC) record(TRUNCATE, st.st_ino, 0, NULL, 0, 0);
}

static int do_open(int directory, const char *path, int flags, mode_t mode) {
    if (journal < 0) return syscall(SYS_openat, directory, path, flags, mode);
    char space[PATH_MAX * 2];
    struct stat st;
    int before = errno;
    pthread_mutex_lock(&lock);
    int existed = !(flags & O_CREAT) || fstatat(directory, path, &st, 0) == 0;
    int fd = -1;
    int fault = existed ? 0 : commanded(WRITE_ERRNO);
    if (fault && locate(directory, path, space)) {
        before = fault; // a full or broken disk takes no new directory entry either
    } else {
        errno = before;
        fd = syscall(SYS_openat, directory, path, flags, mode);
        before = errno;
        if (fd >= 0) opened(fd, existed, flags);
    }
    pthread_mutex_unlock(&lock);
    errno = before;
    return fd;
}

#define OPEN_MODE(flags, mode)                                   \
    mode_t mode = 0;                                             \
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) { \
        va_list list;                                            \
        va_start(list, flags);                                   \
        mode = va_arg(list, mode_t);                             \
        va_end(list);                                            \
    }

int open(const char *path, int flags, ...) {
    OPEN_MODE(flags, mode)
    return do_open(AT_FDCWD, path, flags, mode);
}
int open64(const char *path, int flags, ...) {
    OPEN_MODE(flags, mode)
    return do_open(AT_FDCWD, path, flags, mode);
}
int openat(int directory, const char *path, int flags, ...) {
    OPEN_MODE(flags, mode)
    return do_open(directory, path, flags, mode);
}
int openat64(int directory, const char *path, int flags, ...) {
    OPEN_MODE(flags, mode)
    return do_open(directory, path, flags, mode);
}
int creat(const char *path, mode_t mode) {
    return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
int creat64(const char *path, mode_t mode) {
    return do_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int close(int fd) {
    if (inode_of(fd)) inodes[fd] = 0; // before the kernel can give the number to somebody else
    return syscall(SYS_close, fd);
}

static int duplicated(int from, int to) {
    if (to < 0 || to >= DESCRIPTORS) return to;
    ino_t inode = inode_of(from);
    if (inode) mappable[to] = mappable[from];
    inodes[to] = inode;
    return to;
}
int dup(int fd) {
    return duplicated(fd, syscall(SYS_dup, fd));
}
int dup2(int fd, int to) {
    return fd == to ? to : duplicated(fd, syscall(SYS_dup3, fd, to, 0));
}
int dup3(int fd, int to, int flags) {
    return duplicated(fd, syscall(SYS_dup3, fd, to, flags));
}
static int do_fcntl(int fd, int command, void *argument) {
    int answer = syscall(SYS_fcntl, fd, command, argument);
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) duplicated(fd, answer);
    return answer;
}
#define FCNTL(name)                         \
    int name(int fd, int command, ...) {    \
        va_list list;                       \
        va_start(list, command);            \
        void *argument = va_arg(list, void *); \
        va_end(list);                       \
        return do_fcntl(fd, command, argument); \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

// ---- writes -------------------------------------------------------------------------------------------------------

// How many of `length` bytes at `offset` the disk takes now, or -1 with errno.
static ssize_t room(int fd, off_t offset, size_t length) {
    int fault = commanded(WRITE_ERRNO);
    struct stat st;
    if (!fault) return length;
    if (commanded(ONLY_GROWTH_FAILS) && fstat(fd, &st) == 0) {
        // A full disk still takes what overwrites blocks it has, and the part of a write that does.
        if (offset + (off_t)length <= st.st_size) return length;
        if (offset < st.st_size) return st.st_size - offset;
    }
    errno = fault;
    return -1;
}

// `offset` below 0 means the place of the descriptor, as write(2) has it.
static ssize_t do_write(int fd, const struct iovec *parts, int count, off_t offset) {
    struct stat st;
    size_t length = 0;
    pthread_mutex_lock(&lock);
    ino_t inode = inode_of(fd);
    off_t place = offset;
    if (fstat(fd, &st) != 0) st.st_size = 0;
    if (place < 0) place = syscall(SYS_lseek, fd, 0, SEEK_CUR);
    if (syscall(SYS_fcntl, fd, F_GETFL) & O_APPEND) place = st.st_size;
    for (int i = 0; i < count; i++) length += parts[i].iov_len;
    ssize_t wrote = room(fd, place, length);
    if (count > PARTS) unknown("a write of too many parts");
    if (wrote >= 0) {
        struct iovec some[PARTS];
        size_t left = wrote;
        int n = 0;
        for (; n < count && n < PARTS; n++) {
            size_t take = parts[n].iov_len < left ? parts[n].iov_len : left;
            some[n] = (struct iovec){parts[n].iov_base, take};
            left -= take;
        }
        wrote = offset < 0 ? syscall(SYS_writev, fd, some, n) : syscall(SYS_pwritev, fd, some, n, offset, 0);
        if (wrote > 0) record(WRITE, inode, place, some, n, wrote);
    }
    pthread_mutex_unlock(&lock);
    return wrote;
}

ssize_t write(int fd, const void *bytes, size_t length) {
    struct iovec part = {(void *)bytes, length};
    return inode_of(fd) ? do_write(fd, &part, 1, -1) : syscall(SYS_write, fd, bytes, length);
}
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t offset) {
    struct iovec part = {(void *)bytes, length};
    return inode_of(fd) ? do_write(fd, &part, 1, offset) : syscall(SYS_pwrite64, fd, bytes, length, offset);
}
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t offset) {
    return pwrite(fd, bytes, length, offset);
}
ssize_t writev(int fd, const struct iovec *parts, int count) {
    return inode_of(fd) ? do_write(fd, parts, count, -1) : syscall(SYS_writev, fd, parts, count);
}
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    return inode_of(fd) ? do_write(fd, parts, count, offset) : syscall(SYS_pwritev, fd, parts, count, offset, 0);
}
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    return pwritev(fd, parts, count, offset);
}

int ftruncate(int fd, off_t size) {
    if (!inode_of(fd)) return syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&lock);
    int answer = syscall(SYS_ftruncate, fd, size);
    if (answer == 0) record(TRUNCATE, inode_of(fd), size, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    return answer;
}
int ftruncate64(int fd, off64_t size) {
    return ftruncate(fd, size);
}

// Preallocation, truncate by path, copies inside the kernel and mappings: callers have other ways (write(2) is the
// one std and SQLite fall back to), so these are refused or flagged instead of modelled.
int fallocate(int fd, int mode, off_t offset, off_t length) {
    if (!inode_of(fd)) return syscall(SYS_fallocate, fd, mode, offset, length);
    errno = EOPNOTSUPP;
    return -1;
}
int fallocate64(int fd, int mode, off64_t offset, off64_t length) {
    return fallocate(fd, mode, offset, length);
}
int posix_fallocate(int fd, off_t offset, off_t length) {
    int failed = fallocate(fd, 0, offset, length);
    return failed ? errno : 0;
}
int posix_fallocate64(int fd, off64_t offset, off64_t length) {
    return posix_fallocate(fd, offset, length);
}
ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *there, size_t length, unsigned flags) {
    if (!inode_of(to)) return syscall(SYS_copy_file_range, from, at, to, there, length, flags);
    errno = ENOSYS;
    return -1;
}
ssize_t sendfile(int to, int from, off_t *at, size_t length) {
    if (!inode_of(to)) return syscall(SYS_sendfile, to, from, at, length);
    errno = ENOSYS;
    return -1;
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t length) {
    return sendfile(to, from, at, length);
}
int truncate(const char *path, off_t size) {
    int fd = do_open(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0) return -1;
    int answer = ftruncate(fd, size);
    close(fd);
    return answer;
}
int truncate64(const char *path, off64_t size) {
    return truncate(path, size);
}
void *mmap(void *where, size_t length, int protection, int flags, int fd, off_t offset) {
    int writable = (protection & PROT_WRITE) && (flags & MAP_SHARED) && !(flags & MAP_ANONYMOUS);
    if (writable && inode_of(fd) && !mappable[fd]) {
        pthread_mutex_lock(&lock);
        unknown("a writable shared mapping");
        pthread_mutex_unlock(&lock);
    }
    return (void *)syscall(SYS_mmap, where, length, protection, flags, fd, offset);
}
void *mmap64(void *where, size_t length, int protection, int flags, int fd, off64_t offset) {
    return mmap(where, length, protection, flags, fd, offset);
}

// ---- syncs --------------------------------------------------------------------------------------------------------

static int do_sync(int fd) {
    pthread_mutex_lock(&lock);
    ino_t inode = inode_of(fd);
    uint64_t began = journal_length;
    pthread_mutex_unlock(&lock);
    if (sync_time) usleep(sync_time);
    int fault = commanded(SYNC_ERRNO);
    pthread_mutex_lock(&lock);
    if (fault) record(FAILED, inode, began, NULL, 0, 0);
    else if (!commanded(LIES)) record(SYNC, inode, began, NULL, 0, 0);
    pthread_mutex_unlock(&lock);
    errno = fault ? fault : errno;
    return fault ? -1 : 0;
}
int fsync(int fd) {
    return inode_of(fd) ? do_sync(fd) : syscall(SYS_fsync, fd);
}
int fdatasync(int fd) {
    return inode_of(fd) ? do_sync(fd) : syscall(SYS_fdatasync, fd);
}
// sync_file_range(2) promises nothing about a power cut, so it is left alone: what it wrote stays unsynced here.

// ---- directory entries --------------------------------------------------------------------------------------------

static int do_unlink(int directory, const char *path, int flags) {
    if (journal < 0) return syscall(SYS_unlinkat, directory, path, flags);
    char space[PATH_MAX * 2];
    pthread_mutex_lock(&lock);
    const char *name = locate(directory, path, space);
    int answer = syscall(SYS_unlinkat, directory, path, flags);
    if (answer == 0 && name) record_text(UNLINK, 0, name, strlen(name));
    pthread_mutex_unlock(&lock);
    return answer;
}
int unlink(const char *path) {
    return do_unlink(AT_FDCWD, path, 0);
}
int unlinkat(int directory, const char *path, int flags) {
    return do_unlink(directory, path, flags);
}
int rmdir(const char *path) {
    return do_unlink(AT_FDCWD, path, AT_REMOVEDIR);
}
int remove(const char *path) {
    int answer = unlink(path);
    return answer != 0 && errno == EISDIR ? rmdir(path) : answer;
}

static int do_rename(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    if (journal < 0) return syscall(SYS_renameat2, from_directory, from, to_directory, to, flags);
    char from_space[PATH_MAX * 2], to_space[PATH_MAX * 2], both[PATH_MAX * 4];
    struct stat st;
    pthread_mutex_lock(&lock);
    const char *old = locate(from_directory, from, from_space), *new = locate(to_directory, to, to_space);
    int answer = syscall(SYS_renameat2, from_directory, from, to_directory, to, flags);
    if (answer == 0 && (old || new)) {
        int whole = old && new && !flags && fstatat(to_directory, to, &st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!whole || !S_ISREG(st.st_mode)) unknown("a rename of a directory, an exchange, or across the border");
        else record_text(RENAME, 0, both, snprintf(both, sizeof both, "%s%c%s", old, 0, new));
    }
    pthread_mutex_unlock(&lock);
    return answer;
}
int rename(const char *from, const char *to) {
    return do_rename(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat(int from_directory, const char *from, int to_directory, const char *to) {
    return do_rename(from_directory, from, to_directory, to, 0);
}
int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags) {
    return do_rename(from_directory, from, to_directory, to, flags);
}

// After a call that made `path`: records it under its inode when it lies below the folder.
static void record_new(enum kind kind, int directory, const char *path) {
    char space[PATH_MAX * 2];
    struct stat st;
    const char *name = locate(directory, path, space);
    if (name && fstatat(directory, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
        record_text(kind, st.st_ino, name, strlen(name));
}
int linkat(int from_directory, const char *from, int to_directory, const char *to, int flags) {
    if (journal < 0) return syscall(SYS_linkat, from_directory, from, to_directory, to, flags);
    pthread_mutex_lock(&lock);
    int answer = syscall(SYS_linkat, from_directory, from, to_directory, to, flags);
    if (answer == 0) record_new(LINK, to_directory, to);
    pthread_mutex_unlock(&lock);
    return answer;
}
int link(const char *from, const char *to) {
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}
int mkdirat(int directory, const char *path, mode_t mode) {
    if (journal < 0) return syscall(SYS_mkdirat, directory, path, mode);
    pthread_mutex_lock(&lock);
    int answer = syscall(SYS_mkdirat, directory, path, mode);
    if (answer == 0) record_new(DIRECTORY, directory, path);
    pthread_mutex_unlock(&lock);
    return answer;
}
int mkdir(const char *path, mode_t mode) {
    return mkdirat(AT_FDCWD, path, mode);
}
