export const texts = {
  en: {
    "pending.title": "Pending",
  },
  zh: {
    "pending.title": "等待中",
  },
};
